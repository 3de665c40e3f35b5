struct Uniforms { n: u32 }
@group(0) @binding(0) var<uniform> uniforms: Uniforms;
@group(0) @binding(1) var<storage, read_write> x: array<u32>;

@compute @workgroup_size(1)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
) {
    let i = group.y * groups.x + group.x;
    if i < uniforms.n {
        x[i] = x[i] + i;
    }
}
