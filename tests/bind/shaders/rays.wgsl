// Rays against spheres: structs of vectors, an array in a uniform, a runtime array.
struct Sphere { centre: vec3f, radius: f32, color: vec3f }
struct View { eye: vec3f, side: u32, turn: mat3x3f, lights: array<vec4f, 2> }
struct Hit { distance: f32, sphere: i32, light: f32 }
@group(0) @binding(0) var<uniform> view: View;
@group(1) @binding(0) var<storage> spheres: array<Sphere>;
@group(1) @binding(1) var<storage, read_write> hits: array<Hit>;

fn meet(eye: vec3f, ray: vec3f, sphere: Sphere) -> f32 {
    let way = sphere.centre - eye;
    let along = dot(way, ray);
    let off = dot(way, way) - along * along;
    let inside = sphere.radius * sphere.radius - off;
    if inside < 0.0 { return -1.0; }
    return along - sqrt(inside);
}

@compute @workgroup_size(4, 4)
fn look(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= view.side || id.y >= view.side { return; }
    let at = (vec2f(id.xy) + 0.5) / f32(view.side) - 0.5;
    let ray = normalize(view.turn * vec3f(at, 1.0));
    var hit = Hit(1e9, -1, 0.0);
    for (var i = 0u; i < arrayLength(&spheres); i++) {
        let far = meet(view.eye, ray, spheres[i]);
        if far > 0.0 && far < hit.distance { hit = Hit(far, i32(i), 0.0); }
    }
    if hit.sphere >= 0 {
        let place = view.eye + hit.distance * ray;
        let out = (place - spheres[hit.sphere].centre) / spheres[hit.sphere].radius;
        for (var l = 0; l < 2; l++) {
            hit.light += max(0.0, dot(out, view.lights[l].xyz)) * view.lights[l].w;
        }
    }
    hits[id.y * view.side + id.x] = hit;
}
