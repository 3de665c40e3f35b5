struct Uniforms { n: u32 }
@group(0) @binding(0) var<uniform> uniforms: Uniforms;
@group(0) @binding(1) var<storage, read_write> a: array<f32>;
@group(0) @binding(2) var<storage, read_write> b: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < uniforms.n {
        let kept = a[id.x];
        a[id.x] = b[id.x];
        b[id.x] = kept;
    }
}
