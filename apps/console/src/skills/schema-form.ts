import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { told } from '../ui/text.js';

/** One argument of a skill in a form. */
export interface FormField {
  readonly name: string;
  /** The type of JSON Schema; '' where it names none or several. */
  readonly type: string;
  readonly isRequired: boolean;
  readonly hint: string;
  /** null: any value. */
  readonly options: readonly string[] | null;
}

/** The fields of a form for a JSON Schema of an object. */
export function fieldsOf(schema: JsonObject | undefined): FormField[] {
  const properties = (schema?.['properties'] ?? {}) as Readonly<Record<string, JsonObject>>;
  const required = (schema?.['required'] ?? []) as readonly string[];
  return Object.entries(properties).map(([name, property]) => {
    const { type, description = '', default: usual, enum: values } = property;
    const hints = [told(description), usual === undefined ? '' : `default: ${JSON.stringify(usual)}`];
    return {
      name,
      type: typeof type === 'string' ? type : '',
      isRequired: required.includes(name),
      hint: hints.filter(Boolean).join('; '),
      options: type === 'boolean' ? ['true', 'false'] : Array.isArray(values) ? values.map((value) => JSON.stringify(value)) : null,
    };
  });
}

/** The arguments that were filled in. @throws Error naming a field with a wrong text */
export function valuesOf(fields: readonly FormField[], texts: Readonly<Record<string, string>>): Record<string, JsonValue> {
  const filled = fields.filter(({ name }) => (texts[name] ?? '') !== '');
  return Object.fromEntries(filled.map((field) => [field.name, valueOf(field, texts[field.name]!)]));
}

function valueOf({ name, type, options }: FormField, text: string): JsonValue {
  if (type === 'string' && options === null) return text;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    // Without a type, a text that isn't JSON is taken as a string.
    if (type === '') return text;
    throw new Error(`${name}: write a ${type} as JSON, such as ${EXAMPLES[type] ?? '1'}.`);
  }
}

const EXAMPLES: Readonly<Record<string, string>> = { array: '[1, 2]', object: '{"a": 1}', integer: '3', number: '2.5' };
