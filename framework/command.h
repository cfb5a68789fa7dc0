/* command.h - what travels through the channel to the writer.
 *
 * A command is the head of a larger object, whose owner its type tells: requests (request.h) are heap
 * blocks; finalize and heartbeat are part of the claimed job (job.h), so posting them cannot fail. */
#ifndef PAWLI_COMMAND_H
#define PAWLI_COMMAND_H

#include <stddef.h>

typedef enum pawli_command_type {
    PAWLI_COMMAND_ENQUEUE, /* pawli_enqueue_request */
    PAWLI_COMMAND_OPERATE, /* pawli_operate_request */
    PAWLI_COMMAND_IDLE,    /* pawli_request: answer when nothing is left to do */
    PAWLI_COMMAND_FINALIZE,
    PAWLI_COMMAND_HEARTBEAT
} pawli_command_type;

typedef struct pawli_command {
    struct pawli_command *next;
    pawli_command_type type;
} pawli_command;

/* The object that a member belongs to. */
#define PAWLI_CONTAINER(pointer, type, member)                                                     \
    ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

#endif
