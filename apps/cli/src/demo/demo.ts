import type { Cli } from '../cli.js';
export async function demo(_cli: Cli): Promise<number> { return 0; }
