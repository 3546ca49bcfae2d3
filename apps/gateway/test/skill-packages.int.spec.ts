import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { refusal } from './gateway.harness.js';
import { callOf, type Draft, text } from './skill-drafts.js';
import { skillsForFile } from './skill-workers.js';

const agent = 'numeral';
// Not in the folder of the rig, because only the rig's own user may read that folder.
const packages = mkdtempSync(join(tmpdir(), 'etude-packages-'));
const allowed = join(packages, 'allowed.json');

/** A package as `pip install --target` leaves it in the overlay of the template "numerals", and the list that allows it. */
function writePackage(): void {
  const folder = join(packages, 'overlays', 'numerals', 'roman_digits');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, '__init__.py'), 'def digits(n):\n    return "I" * n\n');
  mkdirSync(join(packages, 'overlays', 'numerals', 'roman_digits-1.4.0.dist-info'));
  writeFileSync(allowed, JSON.stringify({ numerals: ['roman-digits==1.4.0'] }));
  chmodSync(packages, 0o755);
}

beforeAll(writePackage);
afterAll(() => rmSync(packages, { recursive: true }));

const rig = skillsForFile(() => ({
  ETUDE_SANDBOX_PACKAGES_PATH: allowed,
  ETUDE_SANDBOX_OVERLAYS_PATH: join(packages, 'overlays'),
}));
const skills = () => rig.client(Skills);

const ROMAN = 'from roman_digits import digits\ndef roman(n: int) -> str:\n    return digits(n)\n';
const draftOf = (name: string, needed: string[], code = ROMAN): Draft => ({
  name,
  agent,
  description: 'Writes a small number in Roman digits.',
  code,
  packages: needed,
  tests: [callOf([2], text('II')), callOf([3], text('III'))],
});

it('verifies and runs a skill and its caller in a sandbox that has the package', async () => {
  const roman = await skills().registerSkill({ skill: draftOf('roman', ['roman-digits==1.4.0']), wait: true });
  expect(roman).toMatchObject({ status: SkillStatus.ACTIVE, packages: ['roman-digits==1.4.0'], proof: { testsPassed: 2 } });
  const used = await skills().useSkill({ name: 'skills/roman', agent, parameters: { n: 4 } });
  expect(used).toMatchObject({ success: true, result: text('IIII') });
  const caller = draftOf('roman_again', [], 'from skills import roman\ndef roman_again(n: int) -> str:\n    return roman(n)\n');
  expect(await skills().registerSkill({ skill: caller, wait: true })).toMatchObject({ status: SkillStatus.ACTIVE });
  expect(await skills().useSkill({ name: 'skills/roman_again', agent, parameters: { n: 1 } })).toMatchObject({ result: text('I') });
});

it('refuses a package that no sandbox has, and lists the allowed packages', async () => {
  const refused = await refusal(skills().registerSkill({ skill: draftOf('newer', ['roman-digits==2.0.0']) }));
  expect(refused).toMatchObject({ status: status.FAILED_PRECONDITION });
  expect(refused.message).toContain('A skill can use one of these sets: roman-digits==1.4.0 (numerals).');
  expect((await refusal(skills().getSkill({ name: 'skills/newer', agent }))).status).toBe(status.NOT_FOUND);
});
