// One step of a bitonic sort.
struct Step { size: u32, distance: u32, }
@group(0) @binding(0) var<storage, read_write> values: array<i32>;
@group(1) @binding(0) var<uniform> now: Step;

@compute @workgroup_size(32, 1, 1)
fn exchange(@builtin(global_invocation_id) id: vec3u) {
    let a = (id.x / now.distance) * now.distance * 2u + id.x % now.distance;
    let b = a + now.distance;
    if b >= arrayLength(&values) { return; }
    let rising = (a & now.size) == 0u;
    if (values[a] > values[b]) == rising {
        let kept = values[a];
        values[a] = values[b];
        values[b] = kept;
    }
}
