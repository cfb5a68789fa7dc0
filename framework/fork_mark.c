/* fork_mark.c - a page that the kernel empties in a forked child, so that the check on every call costs
 * a load and no system call. Any thread. */
#include "fork_mark.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_bytes(void)
{
    long bytes = sysconf(_SC_PAGESIZE);
    return bytes > 0 ? (size_t)bytes : 4096;
}

void pawli_fork_mark_init(pawli_fork_mark *mark)
{
    mark->pid = getpid();
    mark->page = NULL;
    unsigned char *page =
        mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) { /* Linux before 4.14 */
        (void)munmap(page, page_bytes());
        return;
    }
    page[0] = 1;
    mark->page = page;
}

void pawli_fork_mark_fini(pawli_fork_mark *mark)
{
    if (mark->page != NULL)
        (void)munmap(mark->page, page_bytes());
    mark->page = NULL;
}

bool pawli_fork_mark_is_child(const pawli_fork_mark *mark)
{
    return mark->page != NULL ? mark->page[0] == 0 : mark->pid != getpid();
}

/* There is no way back: between here and whatever called us lies the parent's work. Nothing of the application's is
 * to run on the way out either, no function of atexit() and no destructor, as its own threads are not there. */
void pawli_end_if_child(const pawli_fork_mark *mark)
{
    if (mark != NULL && pawli_fork_mark_is_child(mark))
        _exit(EXIT_SUCCESS);
}
