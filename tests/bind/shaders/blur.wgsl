struct Window { reach: i32 }
@group(0) @binding(0) var<uniform> window: Window;
@group(1) @binding(0) var picture: texture_2d<f32>;
@group(1) @binding(1) var blurred: texture_storage_2d<rgba32float, write>;

@compute @workgroup_size(8, 8, 1)
fn blur(@builtin(global_invocation_id) id: vec3u) {
    let size = vec2i(textureDimensions(picture));
    let here = vec2i(id.xy);
    if any(here >= size) { return; }
    var sum = vec4f();
    for (var dy = -window.reach; dy <= window.reach; dy++) {
        for (var dx = -window.reach; dx <= window.reach; dx++) {
            sum += textureLoad(picture, clamp(here + vec2i(dx, dy), vec2i(), size - 1), 0);
        }
    }
    let width = f32(2 * window.reach + 1);
    textureStore(blurred, here, sum / (width * width));
}
