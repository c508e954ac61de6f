// Dialogs are native: the browser traps the focus, closes them with Escape and restores the focus.
import { h, icon, put, uniqueID } from './dom.js'
import { t } from './language.js'
import { problem } from './parts.js'

/** showDialog opens a dialog with a title, a body and buttons, and returns its element. The element is removed on close or when the view changes. */
export function showDialog({ title, body, actions = [], side = false }) {
  const titleID = uniqueID('dialog')
  const dialog = h('dialog', { class: side ? 'side' : null, 'aria-labelledby': titleID },
    h('header', {}, h('h2', { id: titleID }, title),
      h('button', { type: 'button', class: 'plain', 'aria-label': t('close'), onclick: () => dialog.close() }, icon('close'))),
    h('div', { class: 'dialog-body', tabindex: 0 }, body),
    actions.length > 0 && h('footer', {}, actions))
  dialog.addEventListener('close', () => dialog.remove())
  // A click outside of the dialog does not discard what was filled in.
  dialog.addEventListener('pointerdown', event => event.target === dialog && !dialog.querySelector('form') && dialog.close())
  dialog.addEventListener('click', event => event.target.closest('a') && dialog.close())
  addEventListener('hashchange', () => dialog.close(), { once: true })
  document.body.append(dialog)
  dialog.showModal()
  return dialog
}

/** decide asks for confirmation before act runs. The dialog stays open while act runs, and shows its error. back returns to the previous dialog. */
export function decide({ title, body, label, danger = false, act, back }) {
  const trouble = h('div', { role: 'alert' })
  const yes = h('button', { type: 'button', class: danger ? 'danger' : 'primary' }, label)
  const no = h('button', { type: 'button', autofocus: true, onclick: () => dialog.close() }, t('cancel'))
  yes.addEventListener('click', async () => {
    yes.disabled = true
    try {
      await act()
      dialog.close()
    } catch (error) {
      put(trouble, problem(error))
      yes.disabled = false
    }
  })
  const before = back && h('button', { type: 'button', onclick: () => {
    dialog.close()
    back()
  } }, t('back'))
  const dialog = showDialog({ title, body: [body, trouble], actions: [before, no, yes].filter(Boolean) })
  return dialog
}
