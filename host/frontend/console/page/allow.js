// Rules that would allow a question's call permanently: to read, to copy, and for admins to save as a proposal. They do not answer the question.
import { h, put, uniqueID } from './dom.js'
import { t } from './language.js'
import { guarded, listing, problem } from './parts.js'
import { post, segment } from './server.js'

/** always is the collapsed section with the rules, which are loaded when it is opened. */
export function always(page, question) {
  const body = h('div', { class: 'always' })
  let loaded = false
  const toggled = async () => {
    if (!element.open || loaded) return
    loaded = true
    try {
      put(body, choice(page, question, await page.get(`approvals/${segment(question.id)}/rules`)))
    } catch (error) {
      loaded = false
      if (error.name !== 'AbortError') put(body, problem(error))
    }
  }
  const element = h('details', { ontoggle: toggled }, h('summary', {}, t('allow.title')), body)
  return element
}

function choice(page, question, { rules, before, file }) {
  if (rules.length === 0) return h('p', { class: 'hint' }, t('allow.none'))
  const id = uniqueID('scope')
  const shown = h('div')
  const said = h('div', { role: 'status' })
  const scope = h('select', { id, onchange: () => show() }, rules.map(rule => h('option', { value: rule.scope }, t(`allow.${rule.scope}`))))
  const chosen = () => rules.find(rule => rule.scope === scope.value)
  const show = () => {
    put(shown, listing(chosen().yaml, t('allow.rule')))
    put(said)
  }
  show()
  const save = async () => {
    try {
      const saved = await post(`approvals/${segment(question.id)}/rules`, { scope: scope.value })
      put(said, h('p', { class: 'good' }, t('allow.saved', { file: saved.file })))
    } catch (error) {
      put(said, problem(error))
    }
  }
  return [
    h('p', { class: 'hint' }, t('allow.about', { before })),
    h('div', { class: 'field' }, h('label', { for: id }, t('allow.scope')), scope), shown,
    file && h('div', { class: 'actions' }, guarded(page.session, 'admin', h('button', { type: 'button', onclick: save }, t('allow.save')))), said,
  ]
}
