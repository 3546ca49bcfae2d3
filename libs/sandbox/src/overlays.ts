import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { EtudeError } from '@etude/contracts/errors';
import { TemplateName } from '@etude/contracts/sandbox';
import { packageName, type SandboxPackages } from '@etude/domain/skills/life/skill-packages';

/** Paths of package folders by the name of their sandbox template. */
export type Overlays = ReadonlyMap<string, string>;

const refused = (message: string, cause?: unknown) => new EtudeError('FAILED_PRECONDITION', message, {}, { cause });

/**
 * Reads the templates of local sandboxes. Each folder in `path` is a template of that name and holds its packages, as
 * `pip install --target` writes them. Files in `path` are ignored.
 *
 * @throws EtudeError FAILED_PRECONDITION naming the setting and the path
 */
export async function readOverlays(path: string): Promise<Overlays> {
  const setting = `ETUDE_SANDBOX_OVERLAYS_PATH=${path}`;
  const entries = await readdir(path, { withFileTypes: true }).catch((error: Error) => {
    throw refused(`${setting} can't be read: ${error.message}`, error);
  });
  const names = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink()).map(({ name }) => name);
  const wrong = names.find((name) => !TemplateName.safeParse(name).success);
  if (wrong !== undefined)
    throw refused(
      `${setting} has the folder ${JSON.stringify(wrong)}, and its folders are names of sandbox templates: 1 to 30 lower-case letters, digits and "-"`,
    );
  return new Map(names.toSorted().map((name) => [name, resolve(join(path, name))]));
}

/** The folder with metadata that `pip install --target` writes for each package: its name and version. */
const METADATA = /^(.+)-([^-]+)\.dist-info$/;

/**
 * Checks that each template's folder holds all packages that the list promises to skills, in the promised versions.
 *
 * @throws EtudeError FAILED_PRECONDITION naming the template, what is missing or differs, and what to do
 */
export async function requirePromised(overlays: Overlays, promised: SandboxPackages): Promise<void> {
  for (const [template, packages] of Object.entries(promised)) {
    if (packages.length === 0) continue;
    const path = overlays.get(template);
    const problems = path === undefined ? ['there is no folder of that name'] : await problemsOf(path, packages);
    if (problems.length === 0) continue;
    throw refused(
      `The packages of the sandbox template "${template}" are not what ETUDE_SANDBOX_PACKAGES_PATH promises: ${problems.join('; ')}. ` +
        `Its folder is ${path ?? 'looked for in that of ETUDE_SANDBOX_OVERLAYS_PATH'}: make it anew with "pip install --target", or correct the list.`,
    );
  }
}

async function problemsOf(path: string, packages: readonly string[]): Promise<string[]> {
  const entries = await readdir(path).catch((error: Error) => {
    throw refused(`the packages in ${path} can't be read: ${error.message}`, error);
  });
  const present = entries.flatMap((entry) => {
    const [, name = '', version = ''] = METADATA.exec(entry) ?? [];
    return name ? [{ name: packageName(name), version }] : [];
  });
  return packages.flatMap((one) => {
    const [written = '', version] = one.split('==');
    const found = present.filter(({ name }) => name === packageName(written)).map((other) => other.version);
    if (found.length === 0) return [`${one} is missing`];
    return found.length === 1 && found[0] === version ? [] : [`${one} is there as ${found.join(' and ')}`];
  });
}
