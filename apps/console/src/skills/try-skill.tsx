import { type JsonObject, type JsonValue, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { type Skill, UseSkillResponseSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { useState } from 'react';
import { requestId, useAct } from '../api/client.js';
import { Button } from '../ui/button.js';
import { Output } from '../ui/code.js';
import { Failed } from '../ui/states.js';
import { Badge, duration, submitting, told } from '../ui/text.js';
import { ownerOf, skillId } from './skill-words.js';

export function TrySkill({ skill }: { readonly skill: Skill }) {
  const fields = fieldsOf(skill.inputSchema);
  const isProgram = skill.entryPoint === '';
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const [problem, setProblem] = useState('');
  const use = useAct((api, parameters: Record<string, JsonValue>) => {
    const given = isProgram ? { stdin: texts['stdin'] ?? '' } : { parameters };
    const body = { ...ownerOf(skill), ...given, no_request: true, request_id: requestId() };
    return api.call(UseSkillResponseSchema, 'POST', `/v1/skills/${skillId(skill)}:use`, { body });
  });
  const run = () => {
    try {
      use.mutate(valuesOf(fields, texts));
      setProblem('');
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  const set = (name: string, text: string) => setTexts((before) => ({ ...before, [name]: text }));
  const { data } = use;
  return (
    <>
      <form onSubmit={submitting(run)}>
        {isProgram ? (
          <label className="field">
            <span>Standard input</span>
            <textarea className="code" rows={5} value={texts['stdin'] ?? ''} onChange={({ target }) => set('stdin', target.value)} />
          </label>
        ) : (
          fields.map((field) => <Field key={field.name} field={field} text={texts[field.name]} onText={(text) => set(field.name, text)} />)
        )}
        <Button text="Run" tone="primary" disabled={use.isPending} />
      </form>
      {problem !== '' && (
        <p className="note bad" role="alert">
          {problem}
        </p>
      )}
      {use.error && <Failed error={use.error} />}
      {data && (
        <div aria-live="polite">
          <h3>
            <Badge tone={data.success ? 'good' : 'bad'}>{data.success ? 'succeeded' : 'failed'}</Badge> {duration(data.durationMs)}
          </h3>
          {data.result && <Output text={JSON.stringify(toJson(ValueSchema, data.result), null, 2)} label="Result" />}
          {data.output !== '' && <Output text={data.output} label="Output" />}
          {data.error !== '' && <Output text={data.error} label="Error" tone="bad" />}
          {data.note !== '' && <p>{data.note}</p>}
        </div>
      )}
    </>
  );
}

interface FieldProps {
  readonly field: FormField;
  readonly text: string | undefined;
  readonly onText: (text: string) => void;
}

function Field({ field: { name, type, isRequired, hint, options }, text = '', onText }: FieldProps) {
  const label = (
    <span>
      {name} {!isRequired && '(optional)'} {hint}
    </span>
  );
  if (options !== null)
    return (
      <label className="field">
        {label}
        <select value={text} onChange={({ target }) => onText(target.value)}>
          <option value="">choose</option>
          {options.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      </label>
    );
  const isLong = type === 'array' || type === 'object' || type === '';
  return (
    <label className="field">
      {label}
      {isLong ? (
        <textarea className="code" rows={2} value={text} onChange={({ target }) => onText(target.value)} placeholder="as JSON" />
      ) : (
        <input value={text} inputMode={type === 'string' ? 'text' : 'decimal'} onChange={({ target }) => onText(target.value)} />
      )}
    </label>
  );
}

interface FormField {
  readonly name: string;
  /** The JSON Schema type; '' if the schema names no type or several. */
  readonly type: string;
  readonly isRequired: boolean;
  readonly hint: string;
  /** The allowed values. null: any value is allowed. */
  readonly options: readonly string[] | null;
}

function fieldsOf(schema: JsonObject | undefined): FormField[] {
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

function valuesOf(fields: readonly FormField[], texts: Readonly<Record<string, string>>): Record<string, JsonValue> {
  const filled = fields.filter(({ name }) => (texts[name] ?? '') !== '');
  return Object.fromEntries(filled.map((field) => [field.name, valueOf(field, texts[field.name]!)]));
}

function valueOf({ name, type, options }: FormField, text: string): JsonValue {
  if (type === 'string' && options === null) return text;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    // If the field has no type, text that isn't JSON counts as a string.
    if (type === '') return text;
    throw new Error(`${name}: the text is not JSON. Write a value of the type ${type} as JSON.`);
  }
}
