// The dictionaries of the console: the same keys in all, each used, each used one there, the same places to fill.
import assert from 'node:assert/strict'
import { readFile, readdir } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'

import { root } from './chromium.mjs'

const folder = path.join(root, 'host/console/page')
const { default: en } = await import(path.join(folder, 'lang/en.js'))
const { default: ja } = await import(path.join(folder, 'lang/ja.js'))

const forms = text => typeof text === 'string' ? [text] : Object.values(text)
const places = text => [...new Set(forms(text).flatMap(form => form.match(/\{\w+\}/g) ?? []))].sort()

test('both dictionaries have the same keys, in the same order', () => assert.deepEqual(Object.keys(ja), Object.keys(en)))

test('a text has the same places to fill in both', () => {
  for (const key of Object.keys(en)) assert.deepEqual(places(ja[key]), places(en[key]), key)
})

test('no text is empty, and Japanese is Japanese', () => {
  const latin = new Set(['frontend.slack', 'frontend.mcp-http', 'frontend.mcp-stdio'])
  for (const key of Object.keys(en)) {
    for (const text of [...forms(en[key]), ...forms(ja[key])]) assert.ok(text.trim(), key)
    assert.ok(latin.has(key) || forms(ja[key]).every(text => /[\u3040-\u30ff\u4e00-\u9fff]/.test(text)), `${key}: ${ja[key]}`)
  }
})

test('every key that the page uses is there, and every one that is there is used', async () => {
  const names = (await readdir(folder, { recursive: true })).filter(name => name.endsWith('.js') && !name.startsWith('lang/'))
  const source = (await Promise.all(names.map(name => readFile(path.join(folder, name), 'utf8')))).join('\n')
  const sets = new Set(Object.keys(en).filter(key => key.includes('.')).map(key => key.split('.')[0]))
  const quoted = new Set([...source.matchAll(/'([a-z]+(?:\.[a-zA-Z]+)*)'/g)].map(match => match[1]))
  const called = [...source.matchAll(/\bt\('([^']+)'/g)].map(match => match[1])
  for (const key of [...called, ...[...quoted].filter(text => text.includes('.') && sets.has(text.split('.')[0]))]) {
    assert.ok(Object.hasOwn(en, key), `no text for ${key}`)
  }
  const made = [...source.matchAll(/(?:term|badge|choice)\([^)]*?'([a-z]+)'|`([a-z.]+)\.\$\{/g)].map(match => match[1] ?? match[2])
  assert.deepEqual(Object.keys(en).filter(key => !quoted.has(key) && !made.some(set => key.startsWith(`${set}.`))), [])
})
