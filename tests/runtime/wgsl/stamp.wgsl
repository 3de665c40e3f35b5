struct Uniforms { step: u32, offset: i32, scale: vec3f, rest: f32 }
@group(0) @binding(0) var<uniform> uniforms: Uniforms;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(1)
fn main() {
    y[0] = f32(uniforms.step);
    y[1] = f32(uniforms.offset);
    y[2] = uniforms.scale.x + uniforms.scale.y + uniforms.scale.z;
    y[3] = uniforms.rest;
}
