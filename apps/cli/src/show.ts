import {
  type DescEnum,
  type DescField,
  type DescMessage,
  isFieldSet,
  type JsonValue,
  type Message,
  type MessageShape,
  ScalarType,
  toJson,
} from '@bufbuild/protobuf';
import { DurationSchema, durationMs, TimestampSchema, timestampDate, type Timestamp } from '@bufbuild/protobuf/wkt';
import { firstLine, type Output, table } from './output.js';

/** Mark of every answer that came from a script. */
export const SCRIPTED = '[scripted]';
const CELL_WIDTH = 60;

export const when = (time: Timestamp | undefined) =>
  time
    ? timestampDate(time)
        .toISOString()
        .replace(/\.\d+Z$/, 'Z')
    : '-';

/** A name without its prefix, as commands take it: "sum_of_squares" for "skills/sum_of_squares". */
export const bareName = (name: string) => name.replace(/^(?:skills|tasks|sandboxes|agents|wantedSkills)\//, '');

export const list = (title: string, lines: readonly string[]): string =>
  lines.length === 0 ? '' : [`${title}:`, ...lines.flatMap((line) => line.split('\n')).map((line) => `  ${line}`)].join('\n');

const labelOf = ({ name }: Pick<DescField, 'name'>) => name.replaceAll('_', ' ');
const valueOf = (message: Message, { localName }: DescField) => (message as unknown as Record<string, unknown>)[localName];

function plainText(value: unknown): string {
  if (typeof value === 'object') return JSON.stringify(value);
  return String(typeof value === 'number' ? Number(value.toFixed(3)) : (value as string));
}

function wordOf({ name, values }: DescEnum, value: unknown): string {
  const word = values.find(({ number }) => number === value && number > 0)?.localName ?? '';
  return name === 'Verdict' ? word : word.toLowerCase();
}

function messageText(type: DescMessage, value: unknown): string {
  if (type.typeName === TimestampSchema.typeName) return when(value as Timestamp);
  if (type.typeName === DurationSchema.typeName) return `${(durationMs(value as never) / 1_000).toFixed(1)} s`;
  if (type.typeName.startsWith('google.protobuf.')) return plainText(isStruct(type) ? value : toJson(type, value as never));
  return lineOf(type, value as Message);
}

const isStruct = ({ typeName }: DescMessage) => typeName === 'google.protobuf.Struct';

function textOf(field: DescField, value: unknown): string {
  if (field.fieldKind === 'list') return (value as readonly unknown[]).map((one) => itemText(field, one)).join(', ');
  if (field.fieldKind === 'map')
    return Object.entries(value as object)
      .map(([key, one]) => `${key}=${plainText(one)}`)
      .join(', ');
  if (value === undefined) return '';
  if (field.fieldKind === 'enum') return wordOf(field.enum, value);
  if (field.fieldKind === 'message') return messageText(field.message, value);
  if (typeof value === 'string') return field.name === 'name' ? bareName(value) : value;
  if (typeof value === 'boolean') return value ? (field.name === 'scripted' ? SCRIPTED : 'yes') : 'no';
  return plainText(value);
}

const itemText = (field: DescField & { fieldKind: 'list' }, one: unknown): string =>
  field.listKind === 'message' ? messageText(field.message, one) : String(one);

const isWord = (field: DescField) => field.fieldKind !== 'scalar' || field.scalar === ScalarType.STRING;

function lineOf(type: DescMessage, message: Message): string {
  const { name, version } = message as { name?: string; version?: number };
  if (name !== undefined && version !== undefined) return `${bareName(name)}@${version}`;
  return setFields(type, message)
    .map((field) =>
      isWord(field) ? textOf(field, valueOf(message, field)) : `${labelOf(field)} ${textOf(field, valueOf(message, field))}`,
    )
    .map((text) => firstLine(text, 120))
    .join('  ');
}

const setFields = (type: DescMessage, message: Message) => type.fields.filter((field) => isFieldSet(message, field));

export const wordRows = (type: DescMessage, message: Message, leftOut: readonly string[]): Array<[string, string]> =>
  setFields(type, message)
    .filter((field) => (field.fieldKind === 'scalar' || field.fieldKind === 'enum') && !leftOut.includes(field.localName))
    .map((field) => [labelOf(field), firstLine(textOf(field, valueOf(message, field)), 100)]);

/** The lines of a field that is shown as a section. null for a field that fits into a row. */
function sectionOf(field: DescField, value: unknown): readonly string[] | null {
  if (field.fieldKind === 'list') {
    const items = (value as readonly unknown[]).map((one) => itemText(field, one));
    return field.listKind === 'message' || items.some((item) => /\s/.test(item)) ? items : null;
  }
  if (field.fieldKind === 'map' || (field.message && isStruct(field.message)))
    return [table(Object.entries(value as object).flatMap(([key, one]) => (isEmpty(one) ? [] : [[key, plainText(one)]])))];
  if (field.fieldKind !== 'message' || field.message.typeName.startsWith('google.protobuf.')) return null;
  return [details(field.message, value as Message)];
}

const isEmpty = (value: unknown) => value === null || value === '' || (Array.isArray(value) && value.length === 0);

/** All set fields of a message: short ones as rows, then lists and nested messages, then long texts such as code. */
export function details<Desc extends DescMessage>(type: Desc, message: MessageShape<Desc>): string {
  const rows: string[][] = [];
  const sections: string[] = [];
  const texts: string[] = [];
  for (const field of setFields(type, message)) {
    const value = valueOf(message, field);
    const section = sectionOf(field, value);
    const text = section === null ? textOf(field, value) : '';
    if (section !== null) sections.push(list(labelOf(field), section));
    else if (text.includes('\n')) texts.push(`${labelOf(field)}:\n${text.trimEnd()}`);
    else rows.push([labelOf(field), text]);
  }
  return [table(rows), ...sections, ...texts].filter((part) => part !== '').join('\n\n');
}

/** @param path names of nested fields, such as "result.verdict" */
function cellOf(type: DescMessage, message: Message, path: string): string {
  const [name = '', ...more] = path.split('.');
  const field = type.fields.find((one) => one.name === name);
  if (!field) throw new Error(`${type.typeName} has no ${name}`);
  const value = valueOf(message, field);
  if (more.length > 0 && field.message) return value === undefined ? '-' : cellOf(field.message, value as Message, more.join('.'));
  return firstLine(textOf(field, value), CELL_WIDTH) || '-';
}

const isScripted = (message: object): boolean => {
  const { scripted, result, skill } = message as { scripted?: boolean; result?: object; skill?: object };
  return scripted === true || (typeof result === 'object' && isScripted(result)) || (typeof skill === 'object' && isScripted(skill));
};

/** Messages as rows of a table; '' if there are none. @param columns paths of fields */
export function tableOf(type: DescMessage, messages: readonly Message[], columns: readonly string[]): string {
  if (messages.length === 0) return '';
  const head = columns.map((path) => (path.split('.').at(-1) ?? '').replaceAll('_', ' ').toUpperCase());
  const rows = messages.map((message) => {
    const cells = columns.map((path) => cellOf(type, message, path));
    return isScripted(message) ? [...cells.slice(0, -1), `${cells.at(-1) ?? ''} ${SCRIPTED}`] : cells;
  });
  return table([head, ...rows]);
}

/** A message as `--json` prints it: with every field, even if it is zero. */
export const jsonOf = <Desc extends DescMessage>(type: Desc, message: MessageShape<Desc>): JsonValue =>
  toJson(type, message, { alwaysEmitImplicit: true });

export const show = <Desc extends DescMessage>(out: Output, type: Desc, message: MessageShape<Desc>, text = details(type, message)): void =>
  out.data(jsonOf(type, message), text);
