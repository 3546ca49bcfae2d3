import {
  type DescEnum,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  ScalarType,
  toJson,
} from '@bufbuild/protobuf';
import {
  type Duration,
  durationFromMs,
  FeatureSet_FieldPresence,
  ListValueSchema,
  type Timestamp,
  timestampFromMs,
  timestampMs,
  ValueSchema,
} from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import { invalidField, joinPath, parsedBy, refuseAny, snakeCase, unwrapped, type Violation } from './validation.js';

/**
 * The mapping between messages of `etude.v1` and objects of the contracts, by descriptors. `camelCase` becomes `snake_case`; an enum is its
 * name without the prefix; times and durations are ms; bytes are base64; an object with a `kind` is the oneof `kind`.
 */

/** Keys of the contracts that have another name in the generated messages. */
const NAMES: Readonly<Record<string, string>> = {
  attemptsMax: 'attempts',
  agentStepsMax: 'agentSteps',
  stepsMax: 'steps',
  wallMs: 'wallTime',
  cpuMs: 'cpuTime',
  ttlMs: 'ttl',
  timeoutMs: 'timeout',
  modelTokensMax: 'modelTokens',
  costUsdMax: 'costUsd',
  memoryMiB: 'memoryMib',
  fileSizeMiB: 'fileSizeMib',
  outputKiB: 'outputKib',
  diskMiB: 'diskMib',
  contentBase64: 'content',
  at: 'time',
  createdAt: 'createTime',
  expiresAt: 'expireTime',
  deadlineAt: 'expireTime',
  modifiedMs: 'modifyTime',
  updatedAt: 'updateTime',
  endedAt: 'endTime',
  verifiedAt: 'verifyTime',
  lastUsedAt: 'lastUseTime',
  requestedAt: 'requestTime',
  finishedAt: 'finishTime',
  failedAt: 'failTime',
};

const fieldFor = (desc: DescMessage, key: string): DescField | undefined => desc.field[NAMES[key] ?? key];

/** The oneof of a message that has no other fields. */
const oneofOf = ({ oneofs: [oneof], fields }: DescMessage) =>
  oneof !== undefined && oneof.fields.length === fields.length ? oneof : undefined;

const isOf = (field: DescField, name: string) => field.message?.typeName === `google.protobuf.${name}`;

type Values = Readonly<Record<string, unknown>>;

interface Chosen {
  readonly case?: string;
  readonly value?: Values;
}

/** Converts a stored object to a message. Leaves out nulls, and keys without a field in the message. */
export function toWire<D extends DescMessage>(desc: D, value: object): MessageInitShape<D> {
  return messageOf(desc, value as Values) as MessageInitShape<D>;
}

function messageOf(desc: DescMessage, value: Values): object {
  const oneof = oneofOf(desc);
  const member = oneof?.fields.find(({ name }) => name === value[oneof.localName]);
  if (oneof !== undefined && member?.message !== undefined)
    return { [oneof.localName]: { case: member.localName, value: messageOf(member.message, value) } };
  const init: Record<string, unknown> = {};
  for (const [key, one] of Object.entries(value)) {
    const field = fieldFor(desc, key);
    if (field === undefined || one === undefined || (one === null && !isOf(field, 'Value'))) continue;
    init[field.localName] = fieldValue(field, one);
  }
  return init;
}

function fieldValue(field: DescField, value: unknown): unknown {
  if (field.fieldKind === 'list') return (value as readonly unknown[]).map((one) => wireValue(field, one));
  if (field.fieldKind !== 'map') return wireValue(field, value);
  return Object.fromEntries(Object.entries(value as object).map(([key, one]) => [key, wireValue(field, one)]));
}

function wireValue(field: DescField, value: unknown): unknown {
  if (field.message) return wireMessage(field, field.message, value);
  if (field.enum) return field.enum.values.find(({ localName }) => localName.toLowerCase() === String(value).toLowerCase())?.number;
  if (field.scalar === ScalarType.INT64) return BigInt(Math.round(Number(value)));
  return field.scalar === ScalarType.BYTES ? Buffer.from(String(value), 'base64') : value;
}

function wireMessage(field: DescField, desc: DescMessage, value: unknown): unknown {
  if (isOf(field, 'Timestamp')) return timestampFromMs(Number(value));
  if (isOf(field, 'Duration')) return durationFromMs(Number(value));
  if (isOf(field, 'Value')) return fromJson(ValueSchema, value as JsonValue);
  if (isOf(field, 'ListValue')) return fromJson(ListValueSchema, value as JsonValue);
  return isOf(field, 'Struct') ? value : messageOf(desc, value as Values);
}

/** Whole milliseconds, rounded up so that a tiny duration isn't zero; undefined if unset or zero. */
export function millisecondsOf(duration: Duration | undefined): number | undefined {
  if (!duration) return undefined;
  return Number(duration.seconds) * 1_000 + Math.ceil(duration.nanos / 1_000_000) || undefined;
}

interface WireOptions {
  /** Path of the message in the request, for errors. */
  readonly root?: string;
  /** Violations that the caller of `fromWire` found. */
  readonly found?: readonly Violation[];
}

/**
 * Parses a message with a schema. Zero and empty count as unset if the schema has a default and the proto can't tell the difference.
 *
 * @throws EtudeError INVALID_ARGUMENT with one violation per wrong field, at the path that the caller wrote
 */
export function fromWire<S extends z.ZodType>(
  schema: S,
  desc: DescMessage,
  message: object,
  { root = '', found = [] }: WireOptions = {},
): z.output<S> {
  const reader = new MessageReader([...found]);
  const given = reader.object(schema, desc, message as Values, root);
  const { data, violations } = parsedBy(schema, given, (path) => reader.pathOf(given, path, root));
  const seen = new Set(reader.found.map(({ field }) => field));
  refuseAny([...reader.found, ...violations.filter(({ field }) => !seen.has(field))]);
  return data as z.output<S>;
}

/** The fields that a message sets, by their names in the schema. Zero and empty are left out if the schema has a default. Checks no values. */
export const givenIn = (schema: z.ZodType, desc: DescMessage, message: object) =>
  new MessageReader([]).object(schema, desc, message as Values, '');

/** Maximum number of entries of a list that are read. A small message can hold a million empty entries. */
const ENTRIES_MAX = 20_000;

/** Reads messages by the schemas of their fields, and collects violations that the schemas can't detect. */
class MessageReader {
  /** The messages, by the objects that were made from them. */
  readonly #places = new Map<unknown, { readonly desc: DescMessage; readonly at: string }>();

  constructor(readonly found: Violation[]) {}

  /** Path of a field as the caller wrote it: `spec.evaluator.io_cases.cases[3].stdin`. */
  pathOf(given: unknown, path: readonly PropertyKey[], root: string): string {
    let [at, value] = [root, given];
    for (const key of path) {
      const place = this.#places.get(value);
      const name =
        typeof key === 'number' ? key : place ? (fieldFor(place.desc, String(key))?.name ?? snakeCase(String(key))) : JSON.stringify(key);
      value = (value as Readonly<Record<PropertyKey, unknown>> | undefined)?.[key];
      // The kind of a oneof is the name of its chosen field, which is in the path already.
      if (name !== 'kind') at = this.#places.get(value)?.at ?? joinPath(at, name);
    }
    return at;
  }

  object(schema: z.ZodType, desc: DescMessage, message: Values, at: string): Values | undefined {
    const plain = unwrapped(schema);
    if (plain instanceof z.ZodDiscriminatedUnion) return this.#oneof(plain, desc, message, at);
    const given: Record<string, unknown> = {};
    for (const [key, type] of Object.entries(plain instanceof z.ZodObject ? (plain.shape as Record<string, z.ZodType>) : {})) {
      const field = fieldFor(desc, key);
      const value = field && this.#field(type, field, message[field.localName], joinPath(at, field.name));
      if (value !== undefined) given[key] = value;
    }
    this.#places.set(given, { desc, at });
    return given;
  }

  #oneof(union: z.ZodDiscriminatedUnion, desc: DescMessage, message: Values, at: string): Values | undefined {
    const [oneof] = desc.oneofs;
    const member = message[oneof?.localName ?? ''] as Chosen;
    const field = oneof?.fields.find(({ localName }) => localName === member.case);
    if (field?.message === undefined || member.value === undefined) {
      this.#say(at, `is required; set one of ${desc.fields.map(({ name }) => name).join(', ')}`);
      return undefined;
    }
    const kind = union.def.discriminator;
    const option = union.options
      .map((one) => unwrapped(one as z.ZodType) as z.ZodObject)
      .find(({ shape }) => literalOf(shape[kind]) === field.name);
    const place = { desc: field.message, at: joinPath(at, field.name) };
    const given = { ...(option && this.object(option, place.desc, member.value, place.at)), [kind]: field.name };
    this.#places.set(given, place);
    return given;
  }

  #field(type: z.ZodType, field: DescField, value: unknown, at: string): unknown {
    const inner = unwrapped(type);
    const isOptional = type.safeParse(undefined).success;
    if (field.fieldKind === 'list') {
      const list = value as readonly unknown[];
      const element = inner instanceof z.ZodArray ? (inner.element as z.ZodType) : inner;
      if (list.length > ENTRIES_MAX) return this.#say(at, `must have at most ${ENTRIES_MAX} entries`);
      return list.length === 0 && isOptional ? undefined : list.map((one, index) => this.#value(element, field, one, joinPath(at, index)));
    }
    if (value === undefined && !isOptional && isOf(field, 'Value')) this.#say(at, 'is required; write null as null_value');
    if (value === undefined || field.fieldKind === 'map') return value;
    const read = this.#value(inner, field, value, at);
    const isUnset = field.presence === FeatureSet_FieldPresence.IMPLICIT && (read === 0 || read === '' || read === false);
    return isUnset && isOptional ? undefined : read;
  }

  #value(type: z.ZodType, field: DescField, value: unknown, at: string): unknown {
    if (field.message) return this.#message(type, field, field.message, value, at);
    // An unknown number becomes a text, which the schema refuses.
    if (field.enum)
      return value === 0 ? undefined : (field.enum.value[value as number]?.localName.toLowerCase() ?? `unknown value ${String(value)}`);
    if (field.scalar === ScalarType.INT64) return Number(value);
    return field.scalar === ScalarType.BYTES ? Buffer.from(value as Uint8Array).toString('base64') : value;
  }

  #message(type: z.ZodType, field: DescField, desc: DescMessage, value: unknown, at: string): unknown {
    if (isOf(field, 'Duration')) return millisecondsOf(value as Parameters<typeof millisecondsOf>[0]);
    if (isOf(field, 'Timestamp')) return timestampMs(value as Timestamp);
    if (isOf(field, 'Struct')) return value;
    if (!isOf(field, 'Value') && !isOf(field, 'ListValue')) return this.object(type, desc, value as Values, at);
    try {
      return toJson(desc, value as never);
    } catch {
      this.#say(at, 'must be JSON, with every value set and only finite numbers');
      return undefined;
    }
  }

  #say(field: string, description: string): void {
    this.found.push({ field, description });
  }
}

const literalOf = (schema: unknown) => (schema instanceof z.ZodLiteral ? schema.value : undefined);

/** The enum value as a word; undefined if unspecified. @throws EtudeError INVALID_ARGUMENT for an unknown number */
export function wordOf(desc: DescEnum, value: number, field: string): string | undefined {
  const known = desc.value[value];
  if (known === undefined) throw invalidField(field, `must be one of ${desc.values.map(({ name }) => name).join(', ')}, but is ${value}`);
  return value === 0 ? undefined : known.localName.toLowerCase();
}
