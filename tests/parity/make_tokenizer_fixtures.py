#!/usr/bin/env python3
"""Writes tests/parity/text: small tokenizers and two-tower models as transformers saves them, and its answers.

  make_tokenizer_fixtures.py [clip] [siglip] [siglip2]

The tokenizers are trained here, on sentences that are made up here. Needs transformers, tokenizers and sentencepiece.
"""
import functools
import json
import pathlib
import random
import shutil
import sys

import numpy as np
import sentencepiece
import torch
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from make_tower_fixtures import patches_of

HERE = pathlib.Path(__file__).parent / "text"
WORDS = """a an the photo picture drawing of cat cats dog dogs bird horse ship truck frog deer plane car house tree
river mountain small large red green blue bright dark old new isn't it's they're we'll I've he'd street city night
morning running sleeping eating two three many number 7 42 1999 naïve café Straße Москва кошка собака 東京 猫 犬 日本語
한국어 고양이 مرحبا قطة ελληνικά γάτα שלום""".split()


def sentences(count, seed, made_up=0):
    """Of WORDS, and of so many words made of syllables, so that there is something to learn pieces from."""
    rng = random.Random(seed)
    syllables = [c + v for c in "bcdfgklmnprst" for v in "aeiou"]
    words = WORDS + ["".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(made_up)]
    return [" ".join(rng.choices(words, k=rng.randint(3, 12))) + rng.choice([".", "!", "?", ""]) for _ in range(count)]


def texts():
    """200 texts: everyday ones, and everything that is hard."""
    rng = random.Random(19)
    hard = [
        "", " ", "   ", "\n\t ", "a", "A", ".", "!!!", "'s", "it's", "IT'S THEY'RE", "don''t", "'", "''s's",
        "a photo of a cat", "a photo of a {}.", "  two   spaces  ", "tab\tand\nnewline\r\n", "a\u00a0b\u2003c\u3000d",
        "a\u0085b", "a\u001cb\u001fc", "\u200bzero\u200dwidth\u2060", "soft\u00adhyphen", "\ufeffmark",
        "<|startoftext|>", "<|endoftext|> and more", "x<|endoftext|>y", "<|ENDOFTEXT|>", "<|endoftext", "|>",
        "</s>", "a </s> b", "</s></s>", "<unk>", "a<unk>b", "<pad>", " <unk> ", "</S>", "</w>", "▁", "a▁b", "▁▁a ▁",
        "e\u0301", "é", "a\u0323\u0307", "a\u0307\u0323", "\u0344", "\u1e9b\u0323", "Å\u212bA\u030a", "\u0958",
        "각각\u1100\u1161\u11a8", "\u1100\u1161", "ﬁ ﬂ ﬃ", "①②③ ½ ²", "ＡＢＣ １２３", "㎏ ㍿", "İstanbul", "ΣΑΣ ΟΔΟΣ.",
        "ΣΣ Σ aΣ Σa aΣ'b", "ὈΔΥΣΣΕΎΣ", "straße STRASSE", "ǅ ǆ Ǆ", "Ⅷ ⅷ", "ꜲꜳꙀꙁ", "😀", "😀😃👍🏽", "👨‍👩‍👧‍👦", "🇩🇪🇫🇷", "a😀b",
        "✂️ copy", "日本語のテキスト", "中文，标点。", "한국어 텍스트", "اَلْعَرَبِيَّةُ", "हिन्दी में", "ไทย", "עִבְרִית", "ქართული Ა", "Ꭰꭰ",
        "\u0000", "a\u0000b", "\u0001\u0007\u001b[0m", "\u007f", "\u0080\u009f", "\ufffd", "\uffff", "\U0010ffff",
        "\ue000private", "𝔘𝔫𝔦 𝒸𝑜𝒹𝑒", "𐐀𐐨", "x" * 300, "é" * 120, "1234567890", "3.14159", "1,000,000", "٣٤٥", "௧௨", "a1b2c3",
        "snake_case-and-kebab", "http://example.org/?q=a&b=c#d", "user@example.org", "#tag @name", "`code`", "\\n\\t",
        "\"quoted\" 'single'", "(a) [b] {c} <d>", "$5 €6 £7", "100%", "a/b\\c|d", "~!@#$%^&*()_+", "...", "…", "—–-", "«»“”",
        "a" + "\u0301" * 40, "\u0301 start", "ß ẞ", "ŉ ǰ", "Ω Ω K Å", "ﷺ", "\u2028line\u2029", "a\u200d", "\u202eabc",
    ]
    hard.append(" ".join(rng.choices(WORDS, k=500)))
    hard.append("".join(chr(rng.choice([rng.randint(32, 0x2FF), rng.randint(0x300, 0xD7FF)])) for _ in range(200)))
    while len(hard) < 185:
        hard.append("".join(chr(c) for c in (rng.randint(1, 0x1F9FF) for _ in range(30)) if not 0xD800 <= c < 0xE000))
    return hard + sentences(200 - len(hard), 3)


def letters():
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def clip_tokenizer():
    trained = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    trained.normalizer = transformers.CLIPTokenizer().backend_tokenizer.normalizer
    trained.pre_tokenizer = transformers.CLIPTokenizer().backend_tokenizer.pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=1000, end_of_word_suffix="</w>", initial_alphabet=letters(), show_progress=False)
    trained.train_from_iterator(sentences(2000, 1), trainer)
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in json.loads(trained.to_str())["model"]["merges"]]
    tokens = letters() + [letter + "</w>" for letter in letters()] + [a + b for a, b in merges]
    tokens = list(dict.fromkeys(tokens)) + ["<|startoftext|>", "<|endoftext|>"]
    return transformers.CLIPTokenizer(vocab={t: i for i, t in enumerate(tokens)}, merges=merges, model_max_length=77)


def siglip_tokenizer(folder):
    (folder / "corpus").write_text("\n".join(sentences(2000, 2, 300)).lower())
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus"), model_prefix=str(folder / "spiece"), vocab_size=400, model_type="unigram",
        normalization_rule_name="nmt_nfkc", pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2, num_threads=1,
        character_coverage=0.98, hard_vocab_limit=False)
    (folder / "corpus").unlink()
    (folder / "spiece.vocab").unlink()
    return transformers.SiglipTokenizer(vocab_file=str(folder / "spiece.model"))


def siglip_json(folder):
    """The same pieces as a tokenizer.json."""
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    vocab = [(pieces.id_to_piece(i), pieces.get_score(i)) for i in range(pieces.get_piece_size())]
    made = Tokenizer(models.Unigram(vocab, unk_id=2))
    made.normalizer = normalizers.Sequence([
        normalizers.Lowercase(), normalizers.Replace(Regex(r"[!-\/:-@\[-`\{-~]"), ""),
        normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip(), normalizers.NFC()])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    made.add_special_tokens([AddedToken("</s>", lstrip=True, rstrip=True), AddedToken("<unk>", lstrip=True, rstrip=True)])
    made.enable_padding(pad_id=1, pad_token="</s>", length=64)
    made.enable_truncation(64)
    made.save(str(folder / "tokenizer.json"))
    return made


@functools.cache  # which characters are left out differs from one training to the next
def gemma_pairs():
    """Pairs of characters as Gemma has them, with tokens for the bytes of all other characters: vocabulary and merges."""
    trained = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    trained.normalizer = normalizers.Replace(" ", "▁")
    trained.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "\n\n", "▁▁"]
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=special + [f"<0x{byte:02X}>" for byte in range(256)],
                                  limit_alphabet=60, show_progress=False)
    trained.train_from_iterator([line.lower() for line in sentences(1000, 4, 50)], trainer)
    model = json.loads(trained.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def gemma_tokenizer(kind, **more):
    vocab, merges = gemma_pairs()
    made = kind(vocab=vocab, merges=merges, add_eos_token=True, padding_side="right", model_input_names=["input_ids"],
                model_max_length=64, **more)
    made.add_tokens([AddedToken(token, normalized=False) for token in ("<start_of_turn>", "\n\n", "▁▁")])
    return made


def fill(model, seed):
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "logit" in name:
                parameter.fill_(2.3 if "scale" in name else -1.7)
            elif "norm" in name or "layrnorm" in name:
                parameter.copy_(torch.randn_like(parameter) * 0.3 + (1 if name.endswith("weight") else 0))
            else:
                parameter.copy_(torch.randn_like(parameter) * (0.5 if "embedding" in name else 0.2))
    return model.eval()


def picture_inputs(model, pixels):
    """SigLIP 2 with pictures of any shape takes patches, and what says where they lie."""
    if model.config.model_type == "siglip2":
        return patches_of(pixels, model.config.vision_config.patch_size)
    return pixels, {}


def patch_embeds(model, pixels):
    """Each patch's features: of CLIP its token in place of the class token, of SigLIP pooled with nothing beside it."""
    vision = model.vision_model
    pixels, more = picture_inputs(model, pixels)
    with torch.no_grad():
        tokens = vision(pixels, *more.values()).last_hidden_state
        if model.config.model_type == "clip":
            return model.visual_projection(vision.post_layernorm(tokens[:, 1:]))
        return torch.stack([vision.head(tokens[:, i : i + 1]) for i in range(tokens.shape[1])], dim=1)


def answer(model, tokenizer, folder, sample, length):
    ids = tokenizer(sample, padding="max_length", truncation=True, max_length=length, return_tensors="pt").input_ids
    pixels = torch.randn(2, 3, 32, 32)
    model.save_pretrained(folder)
    model = model.double()
    patches, more = picture_inputs(model, pixels.double())
    with torch.no_grad():
        out = model(input_ids=ids, pixel_values=patches, **more)
    np.save(folder / "input.npy", pixels.numpy())
    np.save(folder / "text_embeds.npy", out.text_embeds.numpy())
    np.save(folder / "image_embeds.npy", out.image_embeds.numpy())
    np.save(folder / "patch_embeds.npy", patch_embeds(model, pixels.double()).numpy())
    np.save(folder / "logits.npy", np.ascontiguousarray(out.logits_per_image.numpy()))


def write_ids(path, rows, pad, length):
    trimmed = []
    for row in rows:
        assert len(row) == length, len(row)
        end = len(row)
        while end and row[end - 1] == pad:
            end -= 1
        trimmed.append(row[:end])
    path.write_text(json.dumps({"length": length, "pad": pad, "ids": trimmed}, separators=(",", ":")) + "\n")


SHARED = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
VISION = {**SHARED, "image_size": 32, "patch_size": 8}


def emptied(name):
    shutil.rmtree(HERE / name, ignore_errors=True)
    (HERE / name).mkdir(parents=True)
    return HERE / name


def make_clip(sample):
    folder = emptied("clip")
    clip = clip_tokenizer()
    clip.save_pretrained(folder)
    clip.backend_tokenizer.model.save(str(folder))
    write_ids(HERE / "clip.json", clip(sample, padding="max_length", truncation=True, max_length=77).input_ids, clip.pad_token_id, 77)
    config = transformers.CLIPConfig(
        text_config={**SHARED, "vocab_size": len(clip), "eos_token_id": clip.eos_token_id, "bos_token_id": clip.bos_token_id,
                     "pad_token_id": clip.pad_token_id},
        vision_config=VISION, projection_dim=24)
    answer(fill(transformers.CLIPModel(config), 1), clip, folder, sample[:40], 77)
    transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(folder)


def make_siglip(sample):
    folder = emptied("siglip")
    siglip = siglip_tokenizer(folder)
    siglip.save_pretrained(folder)
    write_ids(HERE / "siglip.json", siglip(sample, padding="max_length", truncation=True, max_length=64).input_ids, siglip.pad_token_id, 64)
    config = transformers.SiglipConfig(
        text_config={**SHARED, "vocab_size": siglip.vocab_size, "projection_size": 32}, vision_config=VISION)
    answer(fill(transformers.SiglipModel(config), 2), siglip, folder, sample[:40], 64)
    transformers.SiglipImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)

    written = siglip_json(folder)
    shutil.move(folder / "tokenizer.json", emptied("siglip_json") / "tokenizer.json")
    write_ids(HERE / "siglip_json.json", [e.ids for e in written.encode_batch(sample)], 1, 64)


def make_siglip2(sample):
    """Both with the tokenizer files that were published: Gemma's, which lower nothing themselves."""
    vocabulary = {"vocab_size": len(gemma_pairs()[0]), "projection_size": 32}
    lowered = gemma_tokenizer(transformers.Siglip2Tokenizer, add_bos_token=False)
    write_ids(HERE / "siglip2.json", lowered(sample, padding="max_length", truncation=True, max_length=64).input_ids, 0, 64)

    folder = emptied("siglip2")
    gemma_tokenizer(transformers.GemmaTokenizer, add_bos_token=False).save_pretrained(folder)
    config = transformers.Siglip2Config(text_config={**SHARED, **vocabulary}, vision_config={**SHARED, "num_patches": 16, "patch_size": 8})
    answer(fill(transformers.Siglip2Model(config), 3), lowered, folder, sample[:40], 64)
    transformers.Siglip2ImageProcessor(patch_size=8, max_num_patches=16).save_pretrained(folder)
    assert isinstance(transformers.AutoTokenizer.from_pretrained(folder), transformers.Siglip2Tokenizer)

    # Of one size it is a SigLIP, and the file says that texts are lowered.
    folder = emptied("siglip2_square")
    gemma_tokenizer(transformers.GemmaTokenizer, add_bos_token=False, do_lower_case=True).save_pretrained(folder)
    config = transformers.SiglipConfig(text_config={**SHARED, **vocabulary}, vision_config=VISION)
    answer(fill(transformers.SiglipModel(config), 4), lowered, folder, sample[:40], 64)
    transformers.SiglipImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)


MAKERS = {"clip": make_clip, "siglip": make_siglip, "siglip2": make_siglip2}


def main():
    sample = texts()
    assert len(sample) == 200
    (HERE / "texts.json").write_text(json.dumps(sample) + "\n")
    for name in sys.argv[1:] or MAKERS:
        MAKERS[name](sample)


if __name__ == "__main__":
    main()
