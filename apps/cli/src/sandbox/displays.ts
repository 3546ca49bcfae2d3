import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import type { RichOutput } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { bytesText } from './sandbox-lines.js';

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/svg+xml': 'svg',
  'text/html': 'html',
  'text/markdown': 'md',
  'text/plain': 'txt',
  'text/latex': 'tex',
  'application/json': 'json',
  'application/vnd.dataresource+json': 'table.json',
};

const extensionOf = (mediaType: string) => EXTENSIONS[mediaType] ?? mediaType.replace(/^.*\//, '').replace(/[^a-z0-9]+/g, '-');

/** Every form of one output, by media type, as a file's content. */
function formsOf({ text, binary, json }: RichOutput): Array<readonly [string, string | Uint8Array]> {
  return [
    ...Object.entries(binary),
    ...Object.entries(text),
    ...Object.entries(json).map(([type, value]) => [type, `${JSON.stringify(toJson(ValueSchema, value), null, 2)}\n`] as const),
  ];
}

/** What people see of an output in a terminal: its text. */
export const plainText = ({ text }: RichOutput): string => text['text/plain'] ?? '';

/** Forms that a terminal does not show, in words. '' where there are none. */
export function unshownForms(output: RichOutput): string {
  const forms = formsOf(output).filter(([type]) => type !== 'text/plain');
  return forms.map(([type, content]) => `${type}, ${bytesText(Buffer.byteLength(content))}`).join('; ');
}

/** Writes outputs as `1.png`, `2.table.json`, ... in the order in which they come. */
export class DisplayFolder {
  #count = 0;

  constructor(private readonly dir: string) {
    mkdirSync(dir, { recursive: true });
  }

  /** Text alone is no file of its own. @returns paths */
  save(output: RichOutput): string[] {
    const forms = formsOf(output);
    const kept = forms.length > 1 ? forms.filter(([type]) => type !== 'text/plain') : forms;
    this.#count += 1;
    return kept.map(([type, content]) => {
      const path = join(this.dir, `${this.#count}.${extensionOf(type)}`);
      writeFileSync(path, content);
      return path;
    });
  }
}
