// malloc and free in device code: each thread builds a linked list, sums it and frees it.

struct Node {
    Node *next;
    unsigned value;
};

extern "C" __global__ void buildLists(Node **heads, unsigned count, unsigned length)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) {
        return;
    }
    Node *head = 0;
    // Lists differ in length: lanes part.
    for (unsigned place = 0; place < length + index % 3; place++) {
        Node *const node = (Node *)malloc(sizeof(Node));
        if (!node) {
            break;
        }
        node->next = head;
        node->value = index + place;
        head = node;
    }
    heads[index] = head;
}

extern "C" __global__ void consumeLists(Node **heads, unsigned *sums, unsigned count)
{
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= count) {
        return;
    }
    unsigned sum = 0;
    for (Node *node = heads[index]; node;) {
        Node *const next = node->next;
        sum = sum * 31 + node->value;
        free(node);
        node = next;
    }
    sums[index] = sum;
}
