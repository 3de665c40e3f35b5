"""A source with structs, vectors and matrices in every place that may have them."""

SOURCE = """
//! Structs.

/// A light; its \\"quotes\\" and \\\\ stay.
struct Light {
    /// Linear, not sRGB.
    color: vec3f,
    gain: f32,
    falloff: f32[5],
    turn: mat3x3f,
    halves: vec3h[3, 2],
}

struct Vector {
    pack: u32, lambda: f32, FIELDS: vec2i, np: f32, Field: u32, Light: i32, spaced: vec2f,
    light: Light, lights: Light[2] }

struct StepUniform { x: f32, self: mat2x4h }

/// Particles, to be moved.
struct Particle { pos: vec3f, mass: f32, @align(32) vel: vec3f, id: u32 }

kernel step(mut p: Particle[n], light: Light, all: Vector, u: StepUniform, turn: mat3x3f,
            tall: mat2x4f, dt: f32 = 0.5, shift: vec3f = vec3f(1.0, 2.0, 3.0), at: vec2u)
        -> y: vec3f[n], z: f32[n] {
    host twice = 2 * light.gain + all.lights[1].falloff[4] + turn[2].x;
    p[i].pos = p[i].pos + p[i].vel * dt;
    p[i].id = p[i].id + all.pack + at.y;
    y[i] = light.color * light.falloff[2] + turn * p[i].pos + shift;
    z[i] = twice + all.light.halves[2, 1].z + u.self[1].w + tall[1].w * p[i].mass;
}

kernel copies(p: Particle[n, 2], m: mat3x3h[k], v: vec2h[3]) -> q: Particle[n], w: mat3x3f[k],
        x: vec2f[3] {
    q[i].pos = p[i, 1].pos;
    q[i].mass = p[i, 0].mass;
    q[i].vel = p[i, 0].vel;
    q[i].id = p[i, 1].id;
    w[j] = m[j];
    x[j] = v[j];
}
"""
