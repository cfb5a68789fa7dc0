/* consumer.cpp - the same as consumer.c, from C++17. */
#include <pawl/pawl.h>

#include <iostream>
#include <string>

static int greet(pawl_job *job, void *arg)
{
    std::size_t bytes = 0;
    const void *payload = pawl_job_payload(job, &bytes);
    *static_cast<std::string *>(arg) += std::string(static_cast<const char *>(payload), bytes);
    return PAWL_SUCCEEDED;
}

static pawl_status greet_once(const char *store, std::string &greeted)
{
    pawl_options options = PAWL_OPTIONS_INIT;
    options.store = store;
    pawl_pool *pool = nullptr;
    pawl_status status = pawl_open(&options, &pool);
    if (status == PAWL_OK)
        status = pawl_register(pool, "greet", greet, &greeted, nullptr);
    if (status == PAWL_OK)
        status = pawl_start(pool);
    pawl_job_spec job = PAWL_JOB_INIT;
    job.kind = "greet";
    job.payload = "C++";
    job.payload_bytes = 3;
    if (status == PAWL_OK)
        status = pawl_enqueue(pool, &job, nullptr);
    if (status == PAWL_OK)
        status = pawl_wait_idle(pool, 10000);
    const pawl_status closed = pawl_close(pool);
    return status == PAWL_OK ? closed : status;
}

int main(int argc, char **argv)
{
    std::string greeted;
    const pawl_status status = argc == 2 ? greet_once(argv[1], greeted) : PAWL_ERR_INVALID;
    if (status == PAWL_OK && greeted == "C++")
        return 0;
    std::cerr << "consumer: " << pawl_status_name(status) << ", " << pawl_error_message() << '\n';
    return 1;
}
