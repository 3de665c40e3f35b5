struct Body { place: vec4<f32>, speed: vec4<f32>, };
struct Settings { softening: f32, step: f32, damping: f32, count: u32, };
@group(0) @binding(0) var<storage, read_write> bodies: array<Body>;
@group(0) @binding(1) var<uniform> settings: Settings;
override TILE: u32 = 32;
var<workgroup> shared_places: array<vec4<f32>, TILE>;

@compute @workgroup_size(TILE)
fn attract(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) lane: vec3<u32>) {
    let mine = bodies[min(id.x, settings.count - 1u)].place.xyz;
    var pull = vec3<f32>();
    for (var first = 0u; first < settings.count; first += TILE) {
        let i = first + lane.x;
        shared_places[lane.x] = select(vec4<f32>(), bodies[min(i, settings.count - 1u)].place, i < settings.count);
        workgroupBarrier();
        for (var j = 0u; j < TILE; j += 1u) {
            let way = shared_places[j].xyz - mine;
            let far = dot(way, way) + settings.softening;
            pull += way * shared_places[j].w / (far * sqrt(far));
        }
        workgroupBarrier();
    }
    if (id.x < settings.count) {
        bodies[id.x].speed = vec4<f32>(pull, 0.0);
    }
}
