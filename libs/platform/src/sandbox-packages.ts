import { TemplateName } from '@etude/contracts/sandbox';
import { SkillPackage } from '@etude/contracts/skill-proof';
import { z } from 'zod';
import { readJsonFile } from './files.js';

/** Settings of every service that accepts, verifies or runs skills. */
export const sandboxPackagesConfig = z.object({
  /**
   * JSON file with the packages that skills may declare, by the sandbox template whose image has them, such as {"science":
   * ["numpy==2.3.1"]}. Unset: the standard library only.
   */
  ETUDE_SANDBOX_PACKAGES_PATH: z.string().min(1).optional(),
});

const SandboxPackages = z.record(TemplateName, z.array(SkillPackage));

/** @throws EtudeError FAILED_PRECONDITION naming the file, and the wrong field */
export const readSandboxPackages = (path: string | undefined): z.infer<typeof SandboxPackages> =>
  path === undefined ? {} : readJsonFile('file of sandbox packages', path, SandboxPackages);
