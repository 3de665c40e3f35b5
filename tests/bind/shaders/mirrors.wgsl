// A small path tracer: mirrors and lights, the mean of frames.
alias Colour = vec3<f32>;
const FAR: f32 = 1e9;
const BOUNCES = 3u;
const_assert BOUNCES > 0u;

struct Camera {
    eye: vec3f,
    @size(20) aspect: f32,
    turn: mat3x3<f32>,
    size: vec2<u32>,
    frame: u32,
}
struct Material { albedo: Colour, emission: Colour, kind: u32, }
struct Sphere { centre: vec3f, radius: f32, material: u32 }
struct Ray { origin: vec3f, direction: vec3f };
struct Hit { distance: f32, normal: vec3f, material: u32 };
struct Scene { background: Colour, count: u32, spheres: array<Sphere> };

@group(0) @binding(0) var<uniform> camera: Camera;
@group(1) @binding(0) var<storage, read> scene: Scene;
@group(1) @binding(1) var<storage> materials: array<Material>;
@group(2) @binding(0) var<storage, read_write> image: array<vec4f>;

fn ray_of(pixel: vec2u) -> Ray {
    let at = (vec2f(pixel) + 0.5) / vec2f(camera.size) - 0.5;
    return Ray(camera.eye, normalize(camera.turn * vec3f(at.x * camera.aspect, at.y, 1.0)));
}

fn meet(ray: Ray) -> Hit {
    var hit = Hit(FAR, vec3f(), 0u);
    for (var i = 0u; i < scene.count; i++) {
        let sphere = &scene.spheres[i];
        let way = (*sphere).centre - ray.origin;
        let along = dot(way, ray.direction);
        let inside = (*sphere).radius * (*sphere).radius - (dot(way, way) - along * along);
        if inside < 0.0 { continue; }
        let distance = along - sqrt(inside);
        if distance > 1e-3 && distance < hit.distance {
            hit = Hit(distance, (ray.direction * distance - way) / (*sphere).radius, (*sphere).material);
        }
    }
    return hit;
}

@compute @workgroup_size(8, 4, 1)
fn trace(@builtin(global_invocation_id) id: vec3<u32>) {
    if any(id.xy >= camera.size) { return; }
    var ray = ray_of(id.xy);
    var light = Colour();
    var carried = Colour(1.0);
    for (var bounce = 0u; bounce < BOUNCES; bounce++) {
        let hit = meet(ray);
        if hit.distance == FAR { light += carried * scene.background; break; }
        let material = materials[hit.material];
        light += carried * material.emission;
        if material.kind == 0u { light += carried * material.albedo * max(-hit.normal.z, 0.0); break; }
        carried *= material.albedo;
        ray = Ray(ray.origin + hit.distance * ray.direction, reflect(ray.direction, hit.normal));
    }
    let i = id.y * camera.size.x + id.x;
    let weight = 1.0 / f32(camera.frame + 1u);
    image[i] = mix(image[i], vec4f(light, 1.0), weight);
}
