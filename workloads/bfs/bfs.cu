// Breadth-first search over a directed graph, one level at a time, one thread a node: the algorithm of Rodinia's bfs.
//
// `bfs_expand` lets every node of the frontier give its unvisited neighbours their distance and mark them; several may
// reach a neighbour, all with the same distance. `bfs_advance` makes the marked nodes the next frontier, and tells the
// host whether there are any.

// The edges that leave a node: a run of all edges.
struct Node {
    int first_edge;
    int edges;
};

extern "C" __global__ void bfs_expand(
    const Node *graph, const int *targets, unsigned char *frontier, unsigned char *marked,
    const unsigned char *visited, int *distances, int nodes)
{
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || !frontier[node]) {
        return;
    }
    frontier[node] = 0;
    const int distance = distances[node] + 1;
    const int first = graph[node].first_edge;
    const int end = first + graph[node].edges;
    for (int edge = first; edge < end; edge++) {
        const int target = targets[edge];
        if (!visited[target]) {
            distances[target] = distance;
            marked[target] = 1;
        }
    }
}

extern "C" __global__ void bfs_advance(
    unsigned char *frontier, unsigned char *marked, unsigned char *visited, unsigned *any, int nodes)
{
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < nodes && marked[node]) {
        frontier[node] = 1;
        visited[node] = 1;
        marked[node] = 0;
        *any = 1;
    }
}
