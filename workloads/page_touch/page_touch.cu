// Touches blocks of an allocation one after another, with a pause after each: what a driver of unified memory migrates for
// the page fault of each touch shows in the transfers. One thread increments the first word of each block.
//
// The numbers of the blocks come as parameters, a byte each, the first one in the low byte of `blocks0`: a table in memory
// would fault as well. They move down as they are used.

#define BLOCK_WORDS (64 * 1024 / 4)

extern "C" __global__ void page_touch(
    unsigned *words, unsigned touches, unsigned pause, unsigned blocks0, unsigned blocks1, unsigned blocks2,
    unsigned blocks3, unsigned blocks4)
{
    for (unsigned touch = 0; touch < touches; touch++) {
        // The store needs the word that was read, and comes before the clock is read: the pause begins when the page is there.
        volatile unsigned *word = words + (size_t)(blocks0 & 0xff) * BLOCK_WORDS;
        *word = *word + 1;
        const long long begin = clock64();
        while (clock64() - begin < pause) {
        }
        blocks0 = blocks0 >> 8 | blocks1 << 24;
        blocks1 = blocks1 >> 8 | blocks2 << 24;
        blocks2 = blocks2 >> 8 | blocks3 << 24;
        blocks3 = blocks3 >> 8 | blocks4 << 24;
        blocks4 >>= 8;
    }
}
