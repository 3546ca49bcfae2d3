import { useState } from 'react';

interface ButtonProps {
  readonly text: string;
  readonly tone?: 'primary' | 'danger' | undefined;
  readonly disabled?: boolean;
  /** Default: the button submits its form. */
  readonly onPress?: () => void;
}

export const Button = ({ text, tone, disabled, onPress }: ButtonProps) => (
  <button type={onPress ? 'button' : 'submit'} className={tone} disabled={disabled} onClick={onPress}>
    {text}
  </button>
);

/** A change, as `useAct` returns it. */
export interface Act<Input> {
  readonly isPending: boolean;
  readonly mutate: (input: Input) => void;
}

interface ActProps<Input> extends Omit<ButtonProps, 'onPress'> {
  readonly act: Act<Input>;
  readonly input: Input;
}

export const ActButton = <Input,>({ act, input, disabled = false, ...shown }: ActProps<Input>) => (
  <Button {...shown} disabled={disabled || act.isPending} onPress={() => act.mutate(input)} />
);

export function Copy({ content, text }: { readonly content: string; readonly text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () => void navigator.clipboard.writeText(content).then(() => setCopied(true));
  return (
    <button type="button" onClick={copy} onBlur={() => setCopied(false)}>
      <span aria-live="polite">{copied ? 'Copied' : text}</span>
    </button>
  );
}
