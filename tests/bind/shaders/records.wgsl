// Runtime arrays of structs with holes in them.
struct Bone { axis: vec3f, turn: mat3x3f, flags: vec3<u32>, }
struct Key { time: f32, bones: array<Bone, 2>, @align(32) weight: f32, at: vec2f, }
struct Track { name: u32, length: f32, @align(16) limits: mat2x3f, @align(32) keys: array<Key>, }
struct Mean { axis: vec3f, flags: u32, turned: vec3f }

@group(0) @binding(3) var<storage, read> track: Track;
@group(0) @binding(9) var<storage, read_write> means: array<Mean>;

@compute @workgroup_size(32)
fn fold(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    if i >= arrayLength(&track.keys) || i >= arrayLength(&means) { return; }
    let key = track.keys[i];
    var axis = vec3f(0);
    var turned = vec3f(0);
    var flags = 0u;
    for (var b = 0; b < 2; b++) {
        axis += key.bones[b].axis * key.weight;
        turned += key.bones[b].turn * key.bones[b].axis;
        flags ^= key.bones[b].flags.x ^ key.bones[b].flags.y ^ key.bones[b].flags.z;
    }
    means[i] = Mean(clamp(axis, track.limits[0], track.limits[1]), flags + track.name, turned * key.at.x + key.at.y + key.time * track.length);
}
