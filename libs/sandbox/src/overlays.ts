import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { EtudeError } from '@etude/contracts/errors';
import { TemplateName } from '@etude/contracts/sandbox';

/** Folders of packages by the sandbox template that has them. */
export type Overlays = ReadonlyMap<string, string>;

/**
 * The templates of local sandboxes: each folder in `path` is one by its name, and holds what its code may import beyond the standard
 * library, as `pip install --target` puts it there. Files beside them are left alone.
 *
 * @throws EtudeError FAILED_PRECONDITION naming the setting and the path
 */
export async function readOverlays(path: string): Promise<Overlays> {
  const entries = await readdir(path, { withFileTypes: true }).catch((error: Error) => {
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `ETUDE_SANDBOX_OVERLAYS_PATH=${path} can't be read: ${error.message}`,
      {},
      { cause: error },
    );
  });
  const names = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink()).map(({ name }) => name);
  const wrong = names.find((name) => !TemplateName.safeParse(name).success);
  if (wrong !== undefined)
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `ETUDE_SANDBOX_OVERLAYS_PATH=${path} has the folder ${JSON.stringify(wrong)}, and its folders are names of sandbox templates: 1 to 30 lower-case letters, digits and "-"`,
    );
  return new Map(names.toSorted().map((name) => [name, resolve(join(path, name))]));
}
