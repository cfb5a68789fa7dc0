/* cpp_test.cpp - the header in C++17, as an application uses it: open, register, enqueue, run, read. */
#include <pawl/pawl.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace {

void check(bool good, const char *what, int line)
{
    if (good)
        return;
    std::fprintf(stderr, "cpp_test.cpp:%d: %s: %s\n", line, what, pawl_error_message());
    std::exit(1);
}
#define CHECK(condition) check((condition), #condition, __LINE__)

struct seen {
    std::atomic<int> jobs{ 0 };
    std::string payload;
};

int handle(pawl_job *job, void *arg)
{
    auto *s = static_cast<seen *>(arg);
    std::size_t bytes = 0;
    const auto *text = static_cast<const char *>(pawl_job_payload(job, &bytes));
    s->payload.assign(text, bytes);
    s->jobs++;
    return PAWL_SUCCEEDED;
}

} // namespace

int main()
{
    std::string directory = (std::filesystem::temp_directory_path() / "pawl-test-XXXXXX").string();
    CHECK(mkdtemp(directory.data()) != nullptr);
    const std::string path = directory + "/jobs.db";

    pawl_options options = PAWL_OPTIONS_INIT;
    options.store = path.c_str();
    options.executors = 2;
    pawl_pool *pool = nullptr;
    CHECK(pawl_open(&options, &pool) == PAWL_OK);

    seen s;
    pawl_handler_options handler = PAWL_HANDLER_OPTIONS_INIT;
    handler.timeout_ms = 60000;
    CHECK(pawl_register(pool, "greet", handle, &s, &handler) == PAWL_OK);
    CHECK(pawl_start(pool) == PAWL_OK);

    const std::string text = "grüße";
    pawl_job_spec spec = PAWL_JOB_INIT;
    spec.kind = "greet";
    spec.payload = text.data();
    spec.payload_bytes = text.size();
    std::int64_t id = 0;
    CHECK(pawl_enqueue(pool, &spec, &id) == PAWL_OK);
    CHECK(pawl_wait_idle(pool, 20000) == PAWL_OK);
    CHECK(s.jobs == 1);
    CHECK(s.payload == text);

    pawl_job_info info = PAWL_JOB_INFO_INIT;
    CHECK(pawl_get(pool, id, &info) == PAWL_OK);
    CHECK(info.state == PAWL_STATE_SUCCEEDED);
    pawl_job_info_clear(&info);
    pawl_stats_info stats = PAWL_STATS_INIT;
    CHECK(pawl_stats(pool, &stats) == PAWL_OK);
    CHECK(stats.lane_count == 1);
    pawl_stats_info_clear(&stats);
    CHECK(pawl_close(pool) == PAWL_OK);
    std::filesystem::remove_all(directory);
    return 0;
}
