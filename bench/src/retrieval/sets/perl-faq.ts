import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { GeneratedSet } from '../test-set.js';
import { type Labelled, selectSet } from './select.js';

/** Questions as people ask them, with long answers among sections of manuals about the same topics. */
export const perlFaq: GeneratedSet = {
  name: 'perl-faq',
  description: "A question of Perl's FAQ asks for its answer, without the question, among sections of all of Perl's manuals.",
  source: 'Debian package perl-doc',
  licence: 'GPL 1 or later, or Artistic License; see usr/share/doc/perl-doc/copyright of the package',
  make: (cacheDir) => selectSet(sections(podFolder(cacheDir)), { documentsMax: 1_500, queriesMax: 400, charsMax: 1_200 }),
};

/** The folder of the installed package, else of a package that is downloaded and unpacked without being installed. */
function podFolder(cacheDir: string): string {
  const installed = globSync('/usr/share/perl/*/pod/perlfaq4.pod')[0];
  if (installed) return join(installed, '..');
  const folder = join(cacheDir, 'perl-doc');
  const known = () => globSync(join(folder, 'usr/share/perl/*/pod/perlfaq4.pod'))[0];
  if (!known()) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    execFileSync('apt-get', ['download', 'perl-doc'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
    execFileSync('dpkg-deb', ['-x', globSync(join(folder, '*.deb'))[0] ?? '', folder]);
  }
  const found = known();
  if (!found) throw new Error("Debian's perl-doc has no perlfaq4.pod; this set cannot be made");
  return join(found, '..');
}

function sections(folder: string): Labelled[] {
  // Lists of changes are left out, because they repeat the same words.
  const files = globSync('perl*.pod', { cwd: folder })
    .toSorted()
    .filter((file) => !/^perl5\d*delta|^perldelta|^perltoc|^perlfaq\.pod/.test(file));
  return files.flatMap((file) => {
    const parts = readFileSync(join(folder, file), 'utf8')
      .split(/^=head[1-4] /m)
      .slice(1);
    return parts.flatMap((part, i) => section(`${basename(file)} ${i}`, part, /^perlfaq\d/.test(file)));
  });
}

function section(key: string, part: string, isFaq: boolean): Labelled[] {
  const end = part.indexOf('\n\n');
  if (end === -1) return [];
  const heading = plain(part.slice(0, end)).replaceAll(/\s+/g, ' ');
  const answer = plain(part.slice(end).replaceAll(/^=(?:begin|for)\b[^]*?(?=\n\n)|^=\w+[^\n]*$/gm, ''))
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim();
  if (answer.length < 120 || /^(?:NAME|VERSION|AUTHORS?|AUTHOR AND COPYRIGHT|SEE ALSO|COPYRIGHT.*)$/i.test(heading)) return [];
  return [{ key, question: isFaq && heading.endsWith('?') ? heading : null, answer }];
}

const plain = (pod: string) =>
  pod
    .replaceAll(/X<[^>]*>/g, '')
    .replaceAll(/[A-Z]<<+ (.*?) >+>/gs, '$1')
    .replaceAll(/L<(?:([^>|]+)\|)?([^>]+)>/g, (_, label: string | undefined, target: string) => label ?? target)
    .replaceAll(/E<lt>/g, '<')
    .replaceAll(/E<gt>/g, '>')
    .replaceAll(/[A-Z]<([^<>]*)>/g, '$1');
