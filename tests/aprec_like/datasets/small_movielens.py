"""A small file in the format of `ml-1m.zip`."""

import zipfile


def write_zip(folder):
    """Movies 1 and 2 have five ratings, movie 3 has four. Users are iterated in the order 1, 3, 2, 5, 4 by Python 2."""
    ratings = [(user, movie, 5, 100 - movie if user == 1 else 7) for user in range(1, 6) for movie in (1, 2)]
    ratings += [(user, 3, 4, 7) for user in range(1, 5)]
    with zipfile.ZipFile(folder / "ml-1m.zip", "w") as archive:
        archive.writestr("ml-1m/ratings.dat", "".join("::".join(map(str, rating)) + "\n" for rating in ratings))
        archive.writestr(
            "ml-1m/movies.dat", "1::Heat (1995)::Action\n2::Amélie (2001)::Romance\n3::X::Y\n".encode("latin-1")
        )
