// A Lagrangian shock wave on an unstructured mesh of hexahedra, in double precision: the Sedov problem, in the manner of
// the LULESH proxy application (specified in LLNL-TR-490254). Nodes carry positions and velocities, elements energy,
// pressure and volume. A time step is a launch of each kernel below, some of them several times.

struct Nodes {
    double *x, *y, *z;
    double *velocityX, *velocityY, *velocityZ;
    double *accelerationX, *accelerationY, *accelerationZ;
    double *forceX, *forceY, *forceZ;
    const double *mass;
    // Corners of elements that meet at node n: corners[cornerStart[n]] to corners[cornerStart[n + 1] - 1].
    const unsigned *cornerStart, *corners;
};

struct Elements {
    const unsigned *nodes;      // 8 of each element
    const unsigned *neighbours; // 6 of each: below and above along xi, eta, zeta
    const unsigned *borders;    // 2 bits for each of the 6: inner, symmetry plane, free surface
    double *energy, *pressure, *viscosity, *linear, *quadratic;
    double *volume, *newVolume, *volumeChange; // relative to the initial volume
    const double *initialVolume, *mass;
    double *strainRate, *length, *soundSpeed;
    double *stress, *currentVolume;
    double *strainX, *strainY, *strainZ;
    double *velocityXi, *velocityEta, *velocityZeta; // differences of velocity
    double *lengthXi, *lengthEta, *lengthZeta;
    double *cornerX, *cornerY, *cornerZ;             // forces on the 8 corners of each
    double *derivativeX, *derivativeY, *derivativeZ; // of the volume, for the 8 corners
};

// The equation of state's working copies.
struct State {
    double *volume, *volumeChange, *compression, *halfCompression;
    double *oldEnergy, *oldPressure, *oldViscosity, *oldLinear, *oldQuadratic;
    double *energy, *pressure, *halfPressure, *viscosity, *bulk, *slope;
};

// time, time step, the limits of the next step; and what went wrong
struct Clock {
    double *time, *step, *courant, *hydro;
    unsigned *steps, *failures;
};

#define INNER 0u
#define SYMMETRY 1u
#define FREE 2u

#define VOLUME_FAILURE 1u
#define VISCOSITY_FAILURE 2u

static const double tiny = 1e-36;

static __device__ __forceinline__ unsigned globalIndex() { return blockIdx.x * blockDim.x + threadIdx.x; }

struct Corners {
    double x[8], y[8], z[8];
};

static __device__ __forceinline__ Corners gather(const Elements &elements, unsigned element, const double *x,
                                                 const double *y, const double *z)
{
    Corners corners;
#pragma unroll
    for (int corner = 0; corner < 8; corner++) {
        const unsigned node = elements.nodes[8 * element + corner];
        corners.x[corner] = x[node];
        corners.y[corner] = y[node];
        corners.z[corner] = z[node];
    }
    return corners;
}

static __device__ __forceinline__ double triple(double ax, double ay, double az, double bx, double by, double bz,
                                                double cx, double cy, double cz)
{
    return ax * (by * cz - bz * cy) + bx * (az * cy - ay * cz) + cx * (ay * bz - az * by);
}

static __device__ double hexahedronVolume(const Corners &c)
{
#define EDGE(a, b) (c.x[a] - c.x[b]), (c.y[a] - c.y[b]), (c.z[a] - c.z[b])
#define EDGES(a, b, d, e)                                                                                              \
    (c.x[a] - c.x[b] + c.x[d] - c.x[e]), (c.y[a] - c.y[b] + c.y[d] - c.y[e]), (c.z[a] - c.z[b] + c.z[d] - c.z[e])
    return (triple(EDGES(3, 1, 7, 2), EDGE(6, 3), EDGE(2, 0)) + triple(EDGES(4, 3, 5, 7), EDGE(6, 4), EDGE(7, 0)) +
            triple(EDGES(1, 4, 2, 5), EDGE(6, 1), EDGE(5, 0))) /
           12.0;
#undef EDGE
#undef EDGES
}

// The length of the next time step, from the limits that the last one found.
extern "C" __global__ void advanceTime(Clock clock, double largestStep)
{
    if (globalIndex() != 0) {
        return;
    }
    double step = *clock.step;
    if (*clock.steps != 0) {
        double limit = 1e20;
        if (*clock.courant < limit) {
            limit = *clock.courant / 2.0;
        }
        if (*clock.hydro < limit) {
            limit = *clock.hydro * 2.0 / 3.0;
        }
        const double ratio = limit / step;
        if (ratio >= 1.0) {
            if (ratio < 1.1) {
                limit = step;
            } else if (ratio > 1.2) {
                limit = step * 1.2;
            }
        }
        step = fmin(limit, largestStep);
    }
    *clock.step = step;
    *clock.time += step;
    *clock.steps += 1;
    *clock.courant = 1e20;
    *clock.hydro = 1e20;
}

extern "C" __global__ void stressTerms(Elements elements, unsigned count)
{
    const unsigned element = globalIndex();
    if (element < count) {
        elements.stress[element] = -elements.pressure[element] - elements.viscosity[element];
    }
}

// The stress pushes on each face; a quarter of the push goes to each of its corners.
extern "C" __global__ void stressForces(Elements elements, Nodes nodes, unsigned count)
{
    const unsigned element = globalIndex();
    if (element >= count) {
        return;
    }
    const Corners c = gather(elements, element, nodes.x, nodes.y, nodes.z);
    double areaX[8] = {}, areaY[8] = {}, areaZ[8] = {};
    const int faces[6][4] = {{0, 1, 2, 3}, {0, 4, 5, 1}, {1, 5, 6, 2}, {2, 6, 7, 3}, {3, 7, 4, 0}, {4, 7, 6, 5}};
#pragma unroll
    for (int face = 0; face < 6; face++) {
        const int a = faces[face][0], b = faces[face][1], d = faces[face][2], e = faces[face][3];
        const double ux = 0.5 * (c.x[e] + c.x[d] - c.x[b] - c.x[a]);
        const double uy = 0.5 * (c.y[e] + c.y[d] - c.y[b] - c.y[a]);
        const double uz = 0.5 * (c.z[e] + c.z[d] - c.z[b] - c.z[a]);
        const double vx = 0.5 * (c.x[d] + c.x[b] - c.x[e] - c.x[a]);
        const double vy = 0.5 * (c.y[d] + c.y[b] - c.y[e] - c.y[a]);
        const double vz = 0.5 * (c.z[d] + c.z[b] - c.z[e] - c.z[a]);
        const double quarterX = 0.25 * (uy * vz - uz * vy);
        const double quarterY = 0.25 * (uz * vx - ux * vz);
        const double quarterZ = 0.25 * (ux * vy - uy * vx);
#pragma unroll
        for (int corner = 0; corner < 4; corner++) {
            areaX[faces[face][corner]] += quarterX;
            areaY[faces[face][corner]] += quarterY;
            areaZ[faces[face][corner]] += quarterZ;
        }
    }
    const double stress = elements.stress[element];
#pragma unroll
    for (int corner = 0; corner < 8; corner++) {
        elements.cornerX[8 * element + corner] = -stress * areaX[corner];
        elements.cornerY[8 * element + corner] = -stress * areaY[corner];
        elements.cornerZ[8 * element + corner] = -stress * areaZ[corner];
    }
}

static __device__ __forceinline__ void sumCorners(const Elements &elements, const Nodes &nodes, unsigned node,
                                                  double &x, double &y, double &z)
{
    for (unsigned place = nodes.cornerStart[node]; place < nodes.cornerStart[node + 1]; place++) {
        const unsigned corner = nodes.corners[place];
        x += elements.cornerX[corner];
        y += elements.cornerY[corner];
        z += elements.cornerZ[corner];
    }
}

extern "C" __global__ void gatherForces(Elements elements, Nodes nodes, unsigned count)
{
    const unsigned node = globalIndex();
    if (node < count) {
        double x = 0.0, y = 0.0, z = 0.0;
        sumCorners(elements, nodes, node, x, y, z);
        nodes.forceX[node] = x;
        nodes.forceY[node] = y;
        nodes.forceZ[node] = z;
    }
}

// The derivatives of an element's volume with respect to its corners.
extern "C" __global__ void volumeDerivatives(Elements elements, Nodes nodes, Clock clock, unsigned count)
{
    const unsigned element = globalIndex();
    if (element >= count) {
        return;
    }
    const Corners c = gather(elements, element, nodes.x, nodes.y, nodes.z);
    // Of each corner: the six corners that the derivative depends on.
    const int others[8][6] = {{1, 2, 3, 4, 5, 7}, {2, 3, 0, 5, 6, 4}, {3, 0, 1, 6, 7, 5}, {0, 1, 2, 7, 4, 6},
                              {7, 6, 5, 0, 3, 1}, {4, 7, 6, 1, 0, 2}, {5, 4, 7, 2, 1, 3}, {6, 5, 4, 3, 2, 0}};
#pragma unroll
    for (int corner = 0; corner < 8; corner++) {
        const int a = others[corner][0], b = others[corner][1], d = others[corner][2];
        const int e = others[corner][3], f = others[corner][4], g = others[corner][5];
#define DERIVATIVE(u, w)                                                                                               \
    ((u[b] + u[d]) * (w[a] + w[b]) - (u[a] + u[b]) * (w[b] + w[d]) + (u[a] + u[f]) * (w[e] + w[f]) -                   \
     (u[e] + u[f]) * (w[a] + w[f]) - (u[d] + u[g]) * (w[e] + w[g]) + (u[e] + u[g]) * (w[d] + w[g])) /                  \
        12.0
        elements.derivativeX[8 * element + corner] = DERIVATIVE(c.y, c.z);
        elements.derivativeY[8 * element + corner] = DERIVATIVE(c.z, c.x);
        elements.derivativeZ[8 * element + corner] = DERIVATIVE(c.x, c.y);
#undef DERIVATIVE
    }
    elements.currentVolume[element] = elements.initialVolume[element] * elements.volume[element];
    if (elements.volume[element] <= 0.0) {
        atomicOr(clock.failures, VOLUME_FAILURE);
    }
}

// Damps the four hourglass modes of each element (Flanagan and Belytschko).
extern "C" __global__ void hourglassForces(Elements elements, Nodes nodes, double strength, unsigned count)
{
    const unsigned element = globalIndex();
    if (element >= count) {
        return;
    }
    const double modes[4][8] = {{1, 1, -1, -1, -1, -1, 1, 1},
                                {1, -1, -1, 1, -1, 1, 1, -1},
                                {1, -1, 1, -1, 1, -1, 1, -1},
                                {-1, 1, -1, 1, 1, -1, 1, -1}};
    const Corners place = gather(elements, element, nodes.x, nodes.y, nodes.z);
    const Corners velocity = gather(elements, element, nodes.velocityX, nodes.velocityY, nodes.velocityZ);
    const double volume = elements.currentVolume[element];
    const double coefficient =
        -strength * 0.01 * elements.soundSpeed[element] * elements.mass[element] / cbrt(volume);
    double forceX[8] = {}, forceY[8] = {}, forceZ[8] = {};
#pragma unroll
    for (int mode = 0; mode < 4; mode++) {
        double alongX = 0.0, alongY = 0.0, alongZ = 0.0;
#pragma unroll
        for (int corner = 0; corner < 8; corner++) {
            alongX += place.x[corner] * modes[mode][corner];
            alongY += place.y[corner] * modes[mode][corner];
            alongZ += place.z[corner] * modes[mode][corner];
        }
        double shape[8];
        double speedX = 0.0, speedY = 0.0, speedZ = 0.0;
#pragma unroll
        for (int corner = 0; corner < 8; corner++) {
            shape[corner] = modes[mode][corner] - (elements.derivativeX[8 * element + corner] * alongX +
                                                   elements.derivativeY[8 * element + corner] * alongY +
                                                   elements.derivativeZ[8 * element + corner] * alongZ) /
                                                      volume;
            speedX += shape[corner] * velocity.x[corner];
            speedY += shape[corner] * velocity.y[corner];
            speedZ += shape[corner] * velocity.z[corner];
        }
#pragma unroll
        for (int corner = 0; corner < 8; corner++) {
            forceX[corner] += shape[corner] * speedX;
            forceY[corner] += shape[corner] * speedY;
            forceZ[corner] += shape[corner] * speedZ;
        }
    }
#pragma unroll
    for (int corner = 0; corner < 8; corner++) {
        elements.cornerX[8 * element + corner] = coefficient * forceX[corner];
        elements.cornerY[8 * element + corner] = coefficient * forceY[corner];
        elements.cornerZ[8 * element + corner] = coefficient * forceZ[corner];
    }
}

extern "C" __global__ void addForces(Elements elements, Nodes nodes, unsigned count)
{
    const unsigned node = globalIndex();
    if (node < count) {
        double x = nodes.forceX[node], y = nodes.forceY[node], z = nodes.forceZ[node];
        sumCorners(elements, nodes, node, x, y, z);
        nodes.forceX[node] = x;
        nodes.forceY[node] = y;
        nodes.forceZ[node] = z;
    }
}

extern "C" __global__ void accelerate(Nodes nodes, unsigned count)
{
    const unsigned node = globalIndex();
    if (node < count) {
        nodes.accelerationX[node] = nodes.forceX[node] / nodes.mass[node];
        nodes.accelerationY[node] = nodes.forceY[node] / nodes.mass[node];
        nodes.accelerationZ[node] = nodes.forceZ[node] / nodes.mass[node];
    }
}

// Nodes of a symmetry plane do not leave it.
extern "C" __global__ void holdPlane(double *acceleration, const unsigned *plane, unsigned count)
{
    const unsigned index = globalIndex();
    if (index < count) {
        acceleration[plane[index]] = 0.0;
    }
}

static __device__ __forceinline__ double faster(double velocity, double acceleration, double step)
{
    const double result = velocity + acceleration * step;
    return fabs(result) < 1e-7 ? 0.0 : result;
}

extern "C" __global__ void integrateVelocity(Nodes nodes, Clock clock, unsigned count)
{
    const unsigned node = globalIndex();
    if (node < count) {
        const double step = *clock.step;
        nodes.velocityX[node] = faster(nodes.velocityX[node], nodes.accelerationX[node], step);
        nodes.velocityY[node] = faster(nodes.velocityY[node], nodes.accelerationY[node], step);
        nodes.velocityZ[node] = faster(nodes.velocityZ[node], nodes.accelerationZ[node], step);
    }
}

extern "C" __global__ void integratePosition(Nodes nodes, Clock clock, unsigned count)
{
    const unsigned node = globalIndex();
    if (node < count) {
        const double step = *clock.step;
        nodes.x[node] += nodes.velocityX[node] * step;
        nodes.y[node] += nodes.velocityY[node] * step;
        nodes.z[node] += nodes.velocityZ[node] * step;
    }
}

// 16 times the squared area of a face.
static __device__ double faceArea(const Corners &c, int a, int b, int d, int e)
{
    const double fx = (c.x[d] - c.x[a]) - (c.x[e] - c.x[b]);
    const double fy = (c.y[d] - c.y[a]) - (c.y[e] - c.y[b]);
    const double fz = (c.z[d] - c.z[a]) - (c.z[e] - c.z[b]);
    const double gx = (c.x[d] - c.x[a]) + (c.x[e] - c.x[b]);
    const double gy = (c.y[d] - c.y[a]) + (c.y[e] - c.y[b]);
    const double gz = (c.z[d] - c.z[a]) + (c.z[e] - c.z[b]);
    const double mixed = fx * gx + fy * gy + fz * gz;
    return (fx * fx + fy * fy + fz * fz) * (gx * gx + gy * gy + gz * gz) - mixed * mixed;
}

// The new volume and length of each element, and how it is strained half a step ago.
extern "C" __global__ void kinematics(Elements elements, Nodes nodes, Clock clock, unsigned count)
{
    const unsigned element = globalIndex();
    if (element >= count) {
        return;
    }
    Corners c = gather(elements, element, nodes.x, nodes.y, nodes.z);
    const Corners velocity = gather(elements, element, nodes.velocityX, nodes.velocityY, nodes.velocityZ);
    const double volume = hexahedronVolume(c);
    const double relative = volume / elements.initialVolume[element];
    elements.newVolume[element] = relative;
    elements.volumeChange[element] = relative - elements.volume[element];
    double largest = faceArea(c, 0, 1, 2, 3);
    largest = fmax(largest, faceArea(c, 4, 5, 6, 7));
    largest = fmax(largest, faceArea(c, 0, 1, 5, 4));
    largest = fmax(largest, faceArea(c, 1, 2, 6, 5));
    largest = fmax(largest, faceArea(c, 2, 3, 7, 6));
    largest = fmax(largest, faceArea(c, 3, 0, 4, 7));
    elements.length[element] = 4.0 * volume / sqrt(largest);

    const double half = 0.5 * *clock.step;
#pragma unroll
    for (int corner = 0; corner < 8; corner++) {
        c.x[corner] -= half * velocity.x[corner];
        c.y[corner] -= half * velocity.y[corner];
        c.z[corner] -= half * velocity.z[corner];
    }
#define ALONG(u, s, t)                                                                                                 \
    (0.125 * ((u[6] - u[0]) + s * (u[5] - u[3]) + t * (u[7] - u[1]) + (s * t) * (u[4] - u[2])))
    const double xXi = ALONG(c.x, 1.0, -1.0), xEta = ALONG(c.x, -1.0, 1.0);
    const double yXi = ALONG(c.y, 1.0, -1.0), yEta = ALONG(c.y, -1.0, 1.0);
    const double zXi = ALONG(c.z, 1.0, -1.0), zEta = ALONG(c.z, -1.0, 1.0);
#undef ALONG
    const double xZeta = 0.125 * ((c.x[6] - c.x[0]) + (c.x[5] - c.x[3]) + (c.x[7] - c.x[1]) + (c.x[4] - c.x[2]));
    const double yZeta = 0.125 * ((c.y[6] - c.y[0]) + (c.y[5] - c.y[3]) + (c.y[7] - c.y[1]) + (c.y[4] - c.y[2]));
    const double zZeta = 0.125 * ((c.z[6] - c.z[0]) + (c.z[5] - c.z[3]) + (c.z[7] - c.z[1]) + (c.z[4] - c.z[2]));
    const double cofactorXXi = yEta * zZeta - zEta * yZeta, cofactorXEta = zXi * yZeta - yXi * zZeta;
    const double cofactorXZeta = yXi * zEta - zXi * yEta;
    const double cofactorYXi = zEta * xZeta - xEta * zZeta, cofactorYEta = xXi * zZeta - zXi * xZeta;
    const double cofactorYZeta = zXi * xEta - xXi * zEta;
    const double cofactorZXi = xEta * yZeta - yEta * xZeta, cofactorZEta = yXi * xZeta - xXi * yZeta;
    const double cofactorZZeta = xXi * yEta - yXi * xEta;
    const double determinant = 8.0 * (xEta * cofactorXEta + yEta * cofactorYEta + zEta * cofactorZEta);
#define STRAIN(cofactor, v)                                                                                            \
    (((-cofactor##Xi - cofactor##Eta - cofactor##Zeta) * (v[0] - v[6]) +                                               \
      (cofactor##Xi - cofactor##Eta - cofactor##Zeta) * (v[1] - v[7]) +                                                \
      (cofactor##Xi + cofactor##Eta - cofactor##Zeta) * (v[2] - v[4]) +                                                \
      (-cofactor##Xi + cofactor##Eta - cofactor##Zeta) * (v[3] - v[5])) /                                              \
     determinant)
    elements.strainX[element] = STRAIN(cofactorX, velocity.x);
    elements.strainY[element] = STRAIN(cofactorY, velocity.y);
    elements.strainZ[element] = STRAIN(cofactorZ, velocity.z);
#undef STRAIN
}

extern "C" __global__ void strainRates(Elements elements, Clock clock, unsigned count)
{
    const unsigned element = globalIndex();
    if (element >= count) {
        return;
    }
    const double rate = elements.strainX[element] + elements.strainY[element] + elements.strainZ[element];
    elements.strainRate[element] = rate;
    elements.strainX[element] -= rate / 3.0;
    elements.strainY[element] -= rate / 3.0;
    elements.strainZ[element] -= rate / 3.0;
    if (elements.newVolume[element] <= 0.0) {
        atomicOr(clock.failures, VOLUME_FAILURE);
    }
}

struct Vector {
    double x, y, z;
};

static __device__ __forceinline__ Vector difference(const Corners &c, int a, int b, int d, int e, int f, int g, int h,
                                                    int i)
{
    Vector result;
    result.x = 0.25 * ((c.x[a] + c.x[b] + c.x[d] + c.x[e]) - (c.x[f] + c.x[g] + c.x[h] + c.x[i]));
    result.y = 0.25 * ((c.y[a] + c.y[b] + c.y[d] + c.y[e]) - (c.y[f] + c.y[g] + c.y[h] + c.y[i]));
    result.z = 0.25 * ((c.z[a] + c.z[b] + c.z[d] + c.z[e]) - (c.z[f] + c.z[g] + c.z[h] + c.z[i]));
    return result;
}

// Length and difference of velocity across an element, in the direction normal to two of its edges.
static __device__ __forceinline__ void across(Vector u, Vector v, Vector velocity, double volume, double &length,
                                              double &speed)
{
    const double x = u.y * v.z - u.z * v.y;
    const double y = u.z * v.x - u.x * v.z;
    const double z = u.x * v.y - u.y * v.x;
    length = volume / sqrt(x * x + y * y + z * z + tiny);
    speed = (x * velocity.x + y * velocity.y + z * velocity.z) / (volume + tiny);
}

extern "C" __global__ void monotonicGradients(Elements elements, Nodes nodes, unsigned count)
{
    const unsigned element = globalIndex();
    if (element >= count) {
        return;
    }
    const Corners c = gather(elements, element, nodes.x, nodes.y, nodes.z);
    const Corners v = gather(elements, element, nodes.velocityX, nodes.velocityY, nodes.velocityZ);
    const double volume = elements.initialVolume[element] * elements.newVolume[element];
    const Vector xi = difference(c, 1, 2, 6, 5, 0, 3, 7, 4);
    const Vector eta = difference(c, 3, 2, 6, 7, 0, 1, 5, 4);
    const Vector zeta = difference(c, 4, 5, 6, 7, 0, 1, 2, 3);
    across(eta, zeta, difference(v, 1, 2, 6, 5, 0, 3, 7, 4), volume, elements.lengthXi[element],
           elements.velocityXi[element]);
    across(zeta, xi, difference(v, 3, 2, 6, 7, 0, 1, 5, 4), volume, elements.lengthEta[element],
           elements.velocityEta[element]);
    across(xi, eta, difference(v, 4, 5, 6, 7, 0, 1, 2, 3), volume, elements.lengthZeta[element],
           elements.velocityZeta[element]);
}

// How smooth the flow is along one direction: 1 where it is, 0 at a shock.
static __device__ double limiter(const double *velocity, const Elements &elements, unsigned element, int direction)
{
    const double own = velocity[element];
    double sides[2];
#pragma unroll
    for (int side = 0; side < 2; side++) {
        const int face = 2 * direction + side;
        const unsigned border = (elements.borders[element] >> (2 * face)) & 3u;
        if (border == INNER) {
            sides[side] = velocity[elements.neighbours[6 * element + face]];
        } else {
            sides[side] = border == SYMMETRY ? own : 0.0;
        }
        sides[side] /= own + tiny;
    }
    double phi = 0.5 * (sides[0] + sides[1]);
    phi = fmin(phi, fmin(2.0 * sides[0], 2.0 * sides[1]));
    return fmin(fmax(phi, 0.0), 1.0);
}

extern "C" __global__ void monotonicViscosity(Elements elements, unsigned count)
{
    const unsigned element = globalIndex();
    if (element >= count) {
        return;
    }
    const double phiXi = limiter(elements.velocityXi, elements, element, 0);
    const double phiEta = limiter(elements.velocityEta, elements, element, 1);
    const double phiZeta = limiter(elements.velocityZeta, elements, element, 2);
    double linear = 0.0, quadratic = 0.0;
    if (elements.strainRate[element] <= 0.0) {
        const double xi = fmin(elements.velocityXi[element] * elements.lengthXi[element], 0.0);
        const double eta = fmin(elements.velocityEta[element] * elements.lengthEta[element], 0.0);
        const double zeta = fmin(elements.velocityZeta[element] * elements.lengthZeta[element], 0.0);
        const double density =
            elements.mass[element] / (elements.initialVolume[element] * elements.newVolume[element]);
        linear = -0.5 * density * (xi * (1.0 - phiXi) + eta * (1.0 - phiEta) + zeta * (1.0 - phiZeta));
        quadratic = 2.0 / 3.0 * density *
                    (xi * xi * (1.0 - phiXi * phiXi) + eta * eta * (1.0 - phiEta * phiEta) +
                     zeta * zeta * (1.0 - phiZeta * phiZeta));
    }
    elements.linear[element] = linear;
    elements.quadratic[element] = quadratic;
}

extern "C" __global__ void checkViscosity(Elements elements, Clock clock, double largest, unsigned count)
{
    const unsigned element = globalIndex();
    if (element < count && elements.viscosity[element] > largest) {
        atomicOr(clock.failures, VISCOSITY_FAILURE);
    }
}

extern "C" __global__ void clampVolumes(Elements elements, State state, double smallest, double largest,
                                        unsigned count)
{
    const unsigned element = globalIndex();
    if (element < count) {
        state.volume[element] = fmin(fmax(elements.newVolume[element], smallest), largest);
    }
}

extern "C" __global__ void copyState(Elements elements, State state, unsigned count)
{
    const unsigned element = globalIndex();
    if (element < count) {
        state.oldEnergy[element] = elements.energy[element];
        state.volumeChange[element] = elements.volumeChange[element];
        state.oldPressure[element] = elements.pressure[element];
        state.oldViscosity[element] = elements.viscosity[element];
        state.oldLinear[element] = elements.linear[element];
        state.oldQuadratic[element] = elements.quadratic[element];
    }
}

extern "C" __global__ void compress(State state, unsigned count)
{
    const unsigned element = globalIndex();
    if (element < count) {
        state.compression[element] = 1.0 / state.volume[element] - 1.0;
        const double half = state.volume[element] - 0.5 * state.volumeChange[element];
        state.halfCompression[element] = 1.0 / half - 1.0;
    }
}

static __device__ __forceinline__ double cutEnergy(double energy)
{
    return fabs(energy) < 1e-7 ? 0.0 : fmax(energy, -1e15);
}

extern "C" __global__ void energyHalf(State state, unsigned count)
{
    const unsigned element = globalIndex();
    if (element < count) {
        const double push = state.oldPressure[element] + state.oldViscosity[element];
        state.energy[element] =
            fmax(state.oldEnergy[element] - 0.5 * state.volumeChange[element] * push, -1e15);
    }
}

// An ideal gas of gamma 5/3.
extern "C" __global__ void gasPressure(State state, const double *compression, double *pressure, unsigned count)
{
    const unsigned element = globalIndex();
    if (element < count) {
        const double bulk = 2.0 / 3.0 * (compression[element] + 1.0);
        state.bulk[element] = bulk;
        state.slope[element] = 2.0 / 3.0;
        double result = bulk * state.energy[element];
        if (fabs(result) < 1e-7) {
            result = 0.0;
        }
        pressure[element] = fmax(result, 0.0);
    }
}

static __device__ __forceinline__ double soundSpeedOf(const State &state, unsigned element, double volume,
                                                      double pressure)
{
    const double squared =
        state.slope[element] * state.energy[element] + volume * volume * state.bulk[element] * pressure;
    return squared <= 0.1111111e-36 ? 0.3333333e-18 : sqrt(squared);
}

extern "C" __global__ void viscosityHalf(State state, unsigned count)
{
    const unsigned element = globalIndex();
    if (element >= count) {
        return;
    }
    const double change = state.volumeChange[element];
    const double halfPressure = state.halfPressure[element];
    double viscosity = 0.0;
    if (change <= 0.0) {
        const double volume = 1.0 / (1.0 + state.halfCompression[element]);
        viscosity = soundSpeedOf(state, element, volume, halfPressure) * state.oldLinear[element] +
                    state.oldQuadratic[element];
    }
    state.viscosity[element] = viscosity;
    const double push = 3.0 * (state.oldPressure[element] + state.oldViscosity[element]);
    state.energy[element] =
        cutEnergy(state.energy[element] + 0.5 * change * (push - 4.0 * (halfPressure + viscosity)));
}

extern "C" __global__ void energyWhole(State state, unsigned count)
{
    const unsigned element = globalIndex();
    if (element >= count) {
        return;
    }
    const double change = state.volumeChange[element];
    const double pressure = state.pressure[element];
    double viscosity = 0.0;
    if (change <= 0.0) {
        viscosity = soundSpeedOf(state, element, state.volume[element], pressure) * state.oldLinear[element] +
                    state.oldQuadratic[element];
    }
    const double push = 7.0 * (state.oldPressure[element] + state.oldViscosity[element]) -
                        8.0 * (state.halfPressure[element] + state.viscosity[element]) + (pressure + viscosity);
    state.energy[element] = cutEnergy(state.energy[element] - push * change / 6.0);
}

extern "C" __global__ void viscosityWhole(State state, unsigned count)
{
    const unsigned element = globalIndex();
    if (element < count && state.volumeChange[element] <= 0.0) {
        const double viscosity =
            soundSpeedOf(state, element, state.volume[element], state.pressure[element]) * state.oldLinear[element] +
            state.oldQuadratic[element];
        state.viscosity[element] = fabs(viscosity) < 1e-7 ? 0.0 : viscosity;
    }
}

extern "C" __global__ void storeState(Elements elements, State state, unsigned count)
{
    const unsigned element = globalIndex();
    if (element < count) {
        elements.pressure[element] = state.pressure[element];
        elements.energy[element] = state.energy[element];
        elements.viscosity[element] = state.viscosity[element];
    }
}

extern "C" __global__ void soundSpeeds(Elements elements, State state, unsigned count)
{
    const unsigned element = globalIndex();
    if (element < count) {
        elements.soundSpeed[element] =
            soundSpeedOf(state, element, state.volume[element], state.pressure[element]);
    }
}

extern "C" __global__ void updateVolumes(Elements elements, unsigned count)
{
    const unsigned element = globalIndex();
    if (element < count) {
        const double volume = elements.newVolume[element];
        elements.volume[element] = fabs(volume - 1.0) < 1e-10 ? 1.0 : volume;
    }
}

// The smallest of a warp's positive numbers goes to memory; positive doubles compare as integers do.
static __device__ void lowerTo(double *limit, double value)
{
    for (int distance = 16; distance > 0; distance /= 2) {
        value = fmin(value, __shfl_down_sync(0xffffffffu, value, distance));
    }
    if ((threadIdx.x & 31) == 0) {
        atomicMin((unsigned long long *)limit, (unsigned long long)__double_as_longlong(value));
    }
}

extern "C" __global__ void courantLimit(Elements elements, Clock clock, unsigned count)
{
    const unsigned element = globalIndex();
    double limit = 1e20;
    if (element < count && elements.strainRate[element] != 0.0) {
        const double rate = elements.strainRate[element];
        const double length = elements.length[element];
        double squared = elements.soundSpeed[element] * elements.soundSpeed[element];
        if (rate < 0.0) {
            squared += 64.0 * 4.0 * length * length * rate * rate;
        }
        limit = length / sqrt(squared);
    }
    lowerTo(clock.courant, limit);
}

extern "C" __global__ void hydroLimit(Elements elements, Clock clock, unsigned count)
{
    const unsigned element = globalIndex();
    double limit = 1e20;
    if (element < count && elements.strainRate[element] != 0.0) {
        limit = 0.1 / (fabs(elements.strainRate[element]) + 1e-20);
    }
    lowerTo(clock.hydro, limit);
}
