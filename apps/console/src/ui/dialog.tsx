import { Dialog } from '@base-ui/react/dialog';
import type { ReactNode } from 'react';
import type { ApiError } from '../api/client.js';
import { Button } from './button.js';
import { Failed } from './states.js';

interface ModalProps {
  readonly title: string;
  readonly open: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function Modal({ title, open, onClose, children }: ModalProps) {
  return (
    <Dialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="modal">
          <Dialog.Title>{title}</Dialog.Title>
          {children}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

interface ConfirmProps extends ModalProps {
  /** Label of the confirming button. */
  readonly yes: string;
  readonly tone?: 'danger' | 'primary';
  readonly act: { readonly isPending: boolean; readonly error: ApiError | null };
  readonly onYes: () => void;
}

export const Confirm = ({ yes, tone = 'danger', act, onYes, children, ...modal }: ConfirmProps) => (
  <Modal {...modal}>
    {children}
    <div className="buttons">
      <Button text={yes} tone={tone} disabled={act.isPending} onPress={onYes} />
      <Button text="Back" onPress={modal.onClose} />
    </div>
    {act.error && <Failed error={act.error} />}
  </Modal>
);
