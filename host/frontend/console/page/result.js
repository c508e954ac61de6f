// Safe display of a tool's result: text as text, images of known types as images, a description of everything else.
import { h } from './dom.js'
import { bytes, json, t } from './language.js'
import { listing } from './parts.js'

const pictures = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** resultView shows a result of tools/call: its MCP blocks, except that the server has put the contents of resources into the blocks themselves. */
export function resultView(result) {
  const blocks = Array.isArray(result.content) ? result.content : []
  const structured = result.structuredContent
  const repeated = structured !== undefined && blocks.length === 1 && sameJSON(blocks[0].text, structured)
  return [
    ...(repeated ? [] : blocks.map(block)),
    structured !== undefined && h('div', {}, h('h3', {}, t('result.structured')), text(json(structured))),
    blocks.length === 0 && structured === undefined && h('p', { class: 'hint' }, t('result.empty')),
  ]
}

function sameJSON(textual, value) {
  try {
    return JSON.stringify(JSON.parse(textual)) === JSON.stringify(value)
  } catch {
    return false
  }
}

function block(content) {
  switch (content?.type) {
    case 'text': return text(String(content.text ?? ''))
    case 'image': return picture(content)
    case 'audio': return described(t('result.audio'), content)
    case 'resource': return resource(content)
    case 'resource_link': return h('p', {}, t('result.link'), ' ', h('code', {}, content.uri ?? ''), ' ', content.name ?? '')
  }
  return text(json(content))
}

const text = whole => listing(whole, t('result.text'))

function picture(content) {
  const data = String(content.data ?? '')
  if (!pictures.includes(content.mimeType) || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return described(t('result.image'), content)
  return h('img', { class: 'picture', alt: t('result.image'), src: `data:${content.mimeType};base64,${data}` })
}

function resource(contents) {
  const name = h('p', {}, t('result.resource'), ' ', h('code', {}, contents.uri ?? ''))
  return h('div', {}, name, typeof contents.text === 'string' ? text(contents.text) : described('', contents))
}

function described(kind, content) {
  return h('p', { class: 'hint' }, [kind, content.mimeType, bytes(Math.floor(String(content.data ?? '').length * 3 / 4))].filter(Boolean).join(', '))
}
