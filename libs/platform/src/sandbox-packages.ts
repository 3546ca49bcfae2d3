import { readFileSync } from 'node:fs';
import { EtudeError } from '@etude/contracts/errors';
import { TemplateName } from '@etude/contracts/sandbox';
import { SkillPackage } from '@etude/contracts/skill-proof';
import { z } from 'zod';

/** Of whatever takes in, verifies or runs skills. */
export const sandboxPackagesConfig = z.object({
  /**
   * JSON file: packages that skills may declare, by the kind of sandbox whose image has them, such as
   * {"science": ["numpy==2.3.1"]}. Unset: the standard library alone.
   */
  ETUDE_SANDBOX_PACKAGES_PATH: z.string().min(1).optional(),
});

const SandboxPackages = z.record(TemplateName, z.array(SkillPackage));
export type SandboxPackages = z.infer<typeof SandboxPackages>;

/** @throws EtudeError FAILED_PRECONDITION naming the file, and the field where it is another shape */
export function readSandboxPackages(path: string | undefined): SandboxPackages {
  if (path === undefined) return {};
  const parsed = SandboxPackages.safeParse(jsonAt(path));
  if (parsed.success) return parsed.data;
  throw new EtudeError('FAILED_PRECONDITION', `the packages of sandboxes in ${path} are not valid:\n${z.prettifyError(parsed.error)}`);
}

function jsonAt(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new EtudeError('FAILED_PRECONDITION', `the packages of sandboxes in ${path} can't be read: ${why}`, {}, { cause: error });
  }
}
