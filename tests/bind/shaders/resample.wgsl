// Samples a picture and one layer of an array of pictures; writes to a texture and to numbers.
struct Settings { shift: vec2f, level: f32, layer: i32 }
@group(0) @binding(0) var picture: texture_2d<f32>;
@group(0) @binding(1) var layers: texture_2d_array<f32>;
@group(0) @binding(2) var smooth_: sampler;
@group(0) @binding(3) var<uniform> settings: Settings;
@group(0) @binding(4) var result: texture_storage_2d<rgba32float, write>;
@group(0) @binding(5) var ids: texture_2d<u32>;
@group(0) @binding(6) var<storage, read_write> sums: array<atomic<u32>>;

@compute @workgroup_size(4, 4)
fn resample(@builtin(global_invocation_id) id: vec3u) {
    let size = textureDimensions(result);
    if id.x >= size.x || id.y >= size.y { return; }
    let at = (vec2f(id.xy) + 0.5) / vec2f(size) + settings.shift;
    let a = textureSampleLevel(picture, smooth_, at, settings.level);
    let b = textureLoad(layers, id.xy % textureDimensions(layers), settings.layer, 0);
    textureStore(result, id.xy, a + b);
    let which = textureLoad(ids, vec2i(id.xy), 0).x;
    atomicAdd(&sums[which], 1u);
}
