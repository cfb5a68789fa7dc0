#!/bin/sh
# What the library may not call at all, by the symbols that it wants from others (G1, G3, DESIGN: a good guest).
#
#   guest_symbols_test.sh LIBPAWL.SO
set -eu
wanted=$(nm -D --undefined-only "$1" | sed -n 's/^.* U \([^@]*\).*/\1/p')
found=

forbid()
{
    why=$1
    shift
    for name; do
        if printf '%s\n' "$wanted" | grep -qx "$name"; then
            echo "the library calls $name(): $why"
            found=yes
        fi
    done
}

forbid "it belongs to the process" signal atexit on_exit __cxa_atexit exit quick_exit chdir fchdir umask setlocale \
    uselocale setenv putenv unsetenv clearenv setrlimit prlimit nice setpriority daemon
forbid "the host is one process" fork vfork posix_spawn posix_spawnp execv execve execvp system popen
forbid "a thread ends by itself" pthread_cancel pthread_kill pthread_exit
forbid "the host's settings of SQLite are the host's" sqlite3_config sqlite3_shutdown sqlite3_enable_shared_cache \
    sqlite3_auto_extension sqlite3_reset_auto_extension sqlite3_soft_heap_limit64 sqlite3_hard_heap_limit64
forbid "libuv's threads and its default loop are the process's (G3)" uv_queue_work uv_default_loop uv_getaddrinfo \
    uv_fs_open uv_fs_stat uv_fs_read uv_signal_start uv_disable_stdio_inheritance
forbid "standard output is the host's" printf __printf_chk vprintf __vprintf_chk puts putchar
forbid "it has a state that threads share" strtok localtime gmtime ctime asctime rand srand random srandom drand48 \
    tmpnam gethostbyname getpwnam getpwuid ttyname
forbid "it has no bound" gets strcpy strcat sprintf vsprintf

[ -n "$wanted" ] || { echo "no symbols"; exit 1; }
printf '%s\n' "$wanted" | grep -qx sqlite3_step || { echo "not the library"; exit 1; }
[ -z "$found" ]
