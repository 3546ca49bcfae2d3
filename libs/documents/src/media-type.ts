import { EtudeError } from '@etude/contracts/errors';
import type { MediaType } from './document.js';

const BY_EXTENSION: Readonly<Record<string, MediaType>> = {
  md: 'text/markdown',
  markdown: 'text/markdown',
  mdx: 'text/markdown',
  txt: 'text/plain',
  text: 'text/plain',
  rst: 'text/plain',
  html: 'text/html',
  htm: 'text/html',
  xhtml: 'text/html',
  pdf: 'application/pdf',
};

/** By the file's name alone; its content is checked by the parser. @throws EtudeError INVALID_ARGUMENT for any other ending */
export function mediaTypeOf(path: string): MediaType {
  const type = BY_EXTENSION[/\.([^./\\]+)$/.exec(path)?.[1]?.toLowerCase() ?? ''];
  if (type) return type;
  const known = Object.keys(BY_EXTENSION).map((extension) => `.${extension}`);
  throw new EtudeError(
    'INVALID_ARGUMENT',
    `what ${JSON.stringify(path)} is cannot be told from its name; name it with ${known.join(', ')}, or say its media type`,
  );
}
