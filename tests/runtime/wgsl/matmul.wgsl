struct Uniforms { m: u32, k: u32, n: u32 }
@group(0) @binding(0) var<uniform> uniforms: Uniforms;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

@compute @workgroup_size(1)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
) {
    let at = group.y * groups.x + group.x;
    if at >= uniforms.m * uniforms.n {
        return;
    }
    let i = at / uniforms.n;
    let j = at % uniforms.n;
    var sum = 0.0;
    for (var p = 0u; p < uniforms.k; p++) {
        sum += a[i * uniforms.k + p] * b[p * uniforms.n + j];
    }
    c[at] = sum;
}
