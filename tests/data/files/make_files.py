"""Makes the small images of this folder: python3 make_files.py (with Pillow)."""

from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).parent


def colour(x, y, width, height):
    return (x * 255 // (width - 1), y * 255 // (height - 1), (x + y) * 255 // (width + height - 2))


def picture(width, height):
    image = Image.new("RGB", (width, height))
    for y in range(height):
        for x in range(width):
            image.putpixel((x, y), colour(x, y, width, height))
    return image


def main():
    picture(24, 16).save(FOLDER / "colours.png")
    picture(24, 16).quantize(16).save(FOLDER / "palette.png")
    picture(24, 16).convert("L").save(FOLDER / "grey.png")
    picture(24, 16).convert("RGBA").save(FOLDER / "alpha.png")
    picture(200, 120).save(FOLDER / "picture.jpg", quality=95)
    picture(200, 120).save(FOLDER / "progressive.jpg", quality=95, progressive=True)
    picture(200, 120).convert("L").save(FOLDER / "grey.jpg", quality=95)
    picture(64, 48).convert("CMYK").save(FOLDER / "ink.jpg", quality=95)
    # Left half class 0, right half class 1, the last row none, by palette.
    mask = Image.new("P", (24, 16))
    mask.putpalette([0, 0, 0, 200, 30, 30] + [0] * 756 + [255, 255, 255][:3])
    for y in range(16):
        for x in range(24):
            mask.putpixel((x, y), 255 if y == 15 else int(x >= 12))
    mask.save(FOLDER / "mask.png")


if __name__ == "__main__":
    main()
