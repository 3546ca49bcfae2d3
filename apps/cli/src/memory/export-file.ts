import { rmSync, statSync } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';

const REASONS: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `there is no folder ${dirname(path)}`,
  ENOTDIR: (path) => `${dirname(path)} is no folder`,
  EACCES: () => 'that is not allowed',
  EPERM: () => 'that is not allowed',
  EROFS: () => 'the disk can only be read',
  ENOSPC: () => 'the disk is full; what was written of it is removed',
  EDQUOT: () => 'the disk quota is used up; what was written of it is removed',
  EFBIG: () => 'it grew larger than a file may be; what was written of it is removed',
};

function failure(path: string, error: unknown): CliError {
  const { code = '', message } = error as NodeJS.ErrnoException;
  return new CliError(EXIT.usage, `${path} cannot be written: ${REASONS[code]?.(path) ?? message}`, [], { cause: error });
}

/** A file that appears under its name once it is whole, readable by its owner only. Until then it is called `<name>.part`. */
export class ExportFile {
  private constructor(
    private readonly path: string,
    private readonly handle: FileHandle,
  ) {}

  /** @throws CliError usage */
  static async create(path: string): Promise<ExportFile> {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw new CliError(EXIT.usage, `${path} is a folder; name a file`);
    try {
      return new ExportFile(path, await open(`${path}.part`, 'w', 0o600));
    } catch (error) {
      throw failure(path, error);
    }
  }

  /** @throws CliError usage */
  async write(text: string): Promise<void> {
    await this.handle.writeFile(text).catch((error: unknown) => {
      throw failure(this.path, error);
    });
  }

  /** @throws CliError usage */
  async finish(): Promise<void> {
    try {
      await this.handle.sync();
      await this.handle.close();
      await rename(`${this.path}.part`, this.path);
    } catch (error) {
      throw failure(this.path, error);
    }
  }

  /** Removes what there is of it. */
  async discard(): Promise<void> {
    await this.handle.close().catch(() => undefined); // it may be closed already
    rmSync(`${this.path}.part`, { force: true });
  }
}
