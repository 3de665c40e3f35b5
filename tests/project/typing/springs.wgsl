struct Params { count: u32, step: f32, gravity: vec3f, turn: mat3x3f }
struct Node { place: vec3f, mass: f32 }
struct Nodes { total: atomic<u32>, all: array<Node> }
override SIZE: u32 = 64;
override damping: f32;
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> nodes: Nodes;
@group(0) @binding(2) var<storage, read> forces: array<vec3f>;
@group(1) @binding(0) var height: texture_2d<f32>;
@group(1) @binding(1) var near: sampler;
@compute @workgroup_size(SIZE)
fn push(@builtin(global_invocation_id) id: vec3u) {
    let up = textureSampleLevel(height, near, vec2f(0.5), 0.0).x;
    if id.x < params.count {
        let by = params.turn * forces[id.x] + params.gravity * up;
        nodes.all[id.x].place += params.step * damping * by;
        atomicAdd(&nodes.total, 1u);
    }
}
