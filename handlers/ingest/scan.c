/* scan.c - digest and counts of a stream of bytes. One thread for each scan; no I/O here. */
#include "scan.h"

/* Not isspace(): the answer must not depend on the locale. */
static bool is_space(unsigned char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

bool scan_init(struct scan *scan, const EVP_MD *sha256)
{
    *scan = (struct scan){ .digest = EVP_MD_CTX_new() };
    return scan->digest != NULL && EVP_DigestInit_ex(scan->digest, sha256, NULL) == 1;
}

bool scan_add(struct scan *scan, const unsigned char *bytes, size_t count)
{
    int64_t lines = 0, words = 0;
    bool in_word = scan->in_word;
    for (size_t i = 0; i < count; i++) {
        bool space = is_space(bytes[i]);
        lines += bytes[i] == '\n';
        words += !space && !in_word;
        in_word = !space;
    }
    scan->in_word = in_word;
    scan->result.lines += lines;
    scan->result.words += words;
    scan->result.bytes += (int64_t)count;
    return EVP_DigestUpdate(scan->digest, bytes, count) == 1;
}

bool scan_finish(struct scan *scan)
{
    return EVP_DigestFinal_ex(scan->digest, scan->result.sha256, NULL) == 1;
}

void scan_fini(struct scan *scan)
{
    EVP_MD_CTX_free(scan->digest);
}
