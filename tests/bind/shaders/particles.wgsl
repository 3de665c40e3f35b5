/* Particles: moved by a compute shader, /* nested comment */ drawn as squares. */
struct Particle { position: vec2f, velocity: vec2f, colour: vec4f, life: f32, }
struct Simulation { delta: f32, gravity: vec2f, bounce: f32 }
struct View { scale: vec2f, size: f32 }

@group(0) @binding(0) var<uniform> simulation: Simulation;
@group(0) @binding(1) var<storage, read_write> particles: array<Particle>;

@compute @workgroup_size(64)
fn advance(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&particles) { return; }
    var p = particles[id.x];
    p.velocity += simulation.gravity * simulation.delta;
    p.position += p.velocity * simulation.delta;
    if p.position.y < -1.0 {
        p.position.y = -2.0 - p.position.y;
        p.velocity.y *= -simulation.bounce;
    }
    p.life = max(p.life - simulation.delta, 0.0);
    particles[id.x] = p;
}

@group(0) @binding(2) var<storage, read> drawn: array<Particle>;
@group(1) @binding(0) var<uniform> view: View;

struct VertexOut {
    @builtin(position) clip: vec4f,
    @location(0) colour: vec4f,
    @location(1) @interpolate(flat) instance: u32,
}

@vertex
fn corner(@builtin(instance_index) instance: u32, @location(0) offset: vec2<f32>) -> VertexOut {
    let p = drawn[instance];
    let at = p.position * view.scale + offset * view.size;
    return VertexOut(vec4f(at, 0.0, 1.0), p.colour, instance);
}

@fragment
fn shade(in: VertexOut) -> @location(0) vec4f {
    if in.instance > 1000u { discard; }
    return in.colour;
}
