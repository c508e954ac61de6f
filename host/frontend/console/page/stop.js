// The button that stops a running call.
import { decide } from './dialog.js'
import { h } from './dom.js'
import { t, who } from './language.js'
import { code } from './parts.js'
import { post, segment } from './server.js'

/** stopButton asks before it stops the call: rows move as calls end, and the question names the call. */
export function stopButton(call) {
  const name = call.tool || call.method
  return h('button', { type: 'button', class: 'small', 'aria-label': t('calls.stopTitle', { name }), onclick: () => decide({
    title: t('calls.stopTitle', { name }), label: t('calls.stop'), danger: true,
    body: [h('p', {}, who(call), ' · ', code(call.id)), h('p', {}, t('calls.stopAbout'))],
    act: () => post(`calls/${segment(call.id)}/stop`),
  }) }, t('calls.stop'))
}
