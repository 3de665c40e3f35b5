// What passes a test is appended, by a counter at the beginning of the result.
struct Kept { count: atomic<u32>, @align(16) values: array<f32> }
struct Test { least: f32, most: f32 }
@group(0) @binding(0) var<uniform> test: Test;
@group(0) @binding(1) var<storage, read> values: array<f32>;
@group(0) @binding(2) var<storage, read_write> kept: Kept;

@compute @workgroup_size(32)
fn select_between(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&values) { return; }
    let value = values[id.x];
    if value >= test.least && value <= test.most {
        kept.values[atomicAdd(&kept.count, 1u)] = value;
    }
}
