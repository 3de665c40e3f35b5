enable f16;
struct Pair { a: vec3<f16>, b: f16, turn: mat2x2<f16> }
@group(0) @binding(0) var<storage, read> pairs: array<Pair>;
@group(0) @binding(1) var<storage, read_write> sums: array<vec2<f16>>;

@compute @workgroup_size(16)
fn add(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&pairs) {
        let pair = pairs[id.x];
        sums[id.x] = pair.turn * (pair.a.xy + pair.b) + pair.a.zz;
    }
}
