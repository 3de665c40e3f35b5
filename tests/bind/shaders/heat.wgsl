@id(1) override rate: f32 = 0.1;
const size = vec3u(6, 5, 4);
@group(0) @binding(0) var<storage, read> old: array<array<array<f32, 6>, 5>, 4>;
@group(0) @binding(1) var<storage, read_write> next: array<array<array<f32, 6>, 5>, 4>;

fn at(p: vec3i) -> f32 {
    let q = clamp(p, vec3i(0), vec3i(size) - 1);
    return old[q.z][q.y][q.x];
}

@compute @workgroup_size(2, 2, 2)
fn spread(@builtin(global_invocation_id) id: vec3u) {
    if any(id >= size) { return; }
    let p = vec3i(id);
    var around = -6.0 * at(p);
    for (var axis = 0; axis < 3; axis++) {
        var by = vec3i(0);
        by[axis] = 1;
        around += at(p + by) + at(p - by);
    }
    next[id.z][id.y][id.x] = at(p) + rate * around;
}
