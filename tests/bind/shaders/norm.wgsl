// Three entry points that share their bindings: rows are moved to mean 0 and variance 1.
struct Shape { rows: u32, columns: u32, epsilon: f32 }
struct Moments { mean: f32, scale: f32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read_write> rows: array<f32>;
@group(0) @binding(2) var<storage, read_write> moments: array<Moments>;
@group(1) @binding(0) var<storage, read> gain: array<f32>;

@compute @workgroup_size(16)
fn means(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= shape.rows { return; }
    var sum = 0.0;
    for (var j = 0u; j < shape.columns; j++) { sum += rows[id.x * shape.columns + j]; }
    moments[id.x].mean = sum / f32(shape.columns);
}
@compute @workgroup_size(16)
fn scales(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= shape.rows { return; }
    var sum = 0.0;
    for (var j = 0u; j < shape.columns; j++) {
        let away = rows[id.x * shape.columns + j] - moments[id.x].mean;
        sum += away * away;
    }
    moments[id.x].scale = inverseSqrt(sum / f32(shape.columns) + shape.epsilon);
}
@compute @workgroup_size(8, 8)
fn apply(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= shape.columns || id.y >= shape.rows { return; }
    let i = id.y * shape.columns + id.x;
    let m = moments[id.y];
    rows[i] = (rows[i] - m.mean) * m.scale * gain[id.x];
}
