/* A driver library for the tests: two GPUs with known values, and faults named in the environment variable FAULT. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };
typedef struct { unsigned gpu, memory; } utilization_t;
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } process_t;

static int devices[2];
static int fault(const char *name) { const char *set = getenv("FAULT"); return set && strcmp(set, name) == 0; }
static int index_of(void *device) { return (int)((int *)device - devices); }

int nvmlInit_v2(void) { return fault("init") ? DRIVER_NOT_LOADED : SUCCESS; }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "scripted fault"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = fault("empty") ? 0 : 2; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  if (fault("lost") && index == 1) return GPU_IS_LOST;
  *device = &devices[index];
  return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(void *device, utilization_t *rates) {
  if (fault("util")) return NOT_SUPPORTED;
  rates->gpu = 30 + index_of(device);
  rates->memory = 5;
  return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(void *device, memory_t *memory) {
  memory->total = 8192ULL << 20;
  memory->used = (6500ULL + index_of(device)) << 20;
  memory->free = memory->total - memory->used;
  return SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_t *processes) {
  if (index_of(device) == 1) { *count = 0; return SUCCESS; }
  if (*count < 2) { *count = 2; return INSUFFICIENT_SIZE; }
  *count = 2;
  memset(processes, 0, 2 * sizeof *processes);
  processes[0].pid = 1;
  processes[0].used = 100ULL << 20;
  processes[1].pid = fault("stranger") ? 2 : (unsigned)getpid();
  processes[1].used = fault("no_process_memory") ? ~0ULL : 6000ULL << 20;
  return SUCCESS;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { *milliwatts = 70500 + index_of(device); return SUCCESS; }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
  (void)sensor;
  *celsius = 60 + index_of(device);
  return SUCCESS;
}
int nvmlDeviceGetName(void *device, char *name, unsigned length) { (void)device; strncpy(name, "Test GPU", length); return SUCCESS; }
int nvmlSystemGetDriverVersion(char *version, unsigned length) { strncpy(version, "1.2.3", length); return SUCCESS; }
