struct Seed { state: vec2u }
@group(0) @binding(0) var<uniform> seed: Seed;
@group(0) @binding(1) var<storage, read_write> numbers: array<vec4u>;

fn turn(x: u32) -> u32 {
    let state = x * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

@compute @workgroup_size(16)
fn draw(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&numbers) { return; }
    let first = turn(id.x ^ seed.state.x);
    let second = turn(first + seed.state.y);
    numbers[id.x] = vec4u(first, second, turn(second), id.x);
}
