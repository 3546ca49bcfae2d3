import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { SandboxLimits as LimitsMessage, SandboxLimitsSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { SandboxLimits } from '@etude/contracts/sandbox';
import { millisecondsOf } from '../wire/duration.js';

/** Zero means that the default applies. */
const set = (value: number) => (value === 0 ? undefined : value);

/** As the contract names them, before it was asked whether they are allowed. */
export function sandboxLimitsOf(limits: LimitsMessage | undefined): object {
  if (!limits) return {};
  const { cpuTime, wallTime, memoryMib, processes, fileSizeMib, outputKib, diskMib } = limits;
  return {
    cpuMs: millisecondsOf(cpuTime),
    wallMs: millisecondsOf(wallTime),
    memoryMiB: set(memoryMib),
    processes: set(processes),
    fileSizeMiB: set(fileSizeMib),
    outputKiB: set(outputKib),
    diskMiB: set(diskMib),
  };
}

/** Names of the contract that the proto calls otherwise. */
export const SANDBOX_LIMIT_NAMES: Readonly<Record<string, string>> = {
  cpuMs: 'cpu_time',
  wallMs: 'wall_time',
  memoryMiB: 'memory_mib',
  fileSizeMiB: 'file_size_mib',
  outputKiB: 'output_kib',
  diskMiB: 'disk_mib',
};

export const sandboxLimitsMessage = (limits: SandboxLimits): MessageInitShape<typeof SandboxLimitsSchema> => ({
  cpuTime: durationFromMs(limits.cpuMs),
  wallTime: durationFromMs(limits.wallMs),
  memoryMib: limits.memoryMiB,
  processes: limits.processes,
  fileSizeMib: limits.fileSizeMiB,
  outputKib: limits.outputKiB,
  diskMib: limits.diskMiB,
});
