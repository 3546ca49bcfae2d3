/** Limits that the proto calls otherwise than the contract. */
export const SANDBOX_LIMIT_NAMES: Readonly<Record<string, string>> = {
  cpuMs: 'cpu_time',
  wallMs: 'wall_time',
  memoryMiB: 'memory_mib',
  fileSizeMiB: 'file_size_mib',
  outputKiB: 'output_kib',
  diskMiB: 'disk_mib',
};
